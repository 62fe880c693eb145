# Each step overwrites what the one before stored, so that steps stay whole and in order.
# not TVM's
from tvm.script import ir as I, tirx as T


@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(P: T.Buffer((8, 4, 64), "float32"), R: T.Buffer((4, 64, 64), "float32"), H: T.Buffer((8, 64), "float32"), Y: T.Buffer((4, 64), "float32")):
        for t in range(8):
            for i, j, k in T.grid(4, 64, 64):
                with T.sblock("Y"):
                    vt = T.axis.scan(8, t)
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    with T.init():
                        Y[vi, vj] = P[vt, vi, vj]
                    Y[vi, vj] = Y[vi, vj] + H[vt, vk] * R[vi, vk, vj]
