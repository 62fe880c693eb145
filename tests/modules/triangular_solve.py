from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(L: T.Buffer((6, 6), "float32"), b: T.Buffer((6,), "float32"), x: T.Buffer((6,), "float32")):
        for i in range(6):
            with T.sblock("x"):
                vi = T.axis.opaque(6, i)
                T.reads(L[vi, 0:6], b[vi], x[0:6])
                T.writes(x[vi])
                x[vi] = b[vi]
                for j in range(vi):
                    x[vi] = x[vi] - L[vi, j] * x[j]
                x[vi] = x[vi] / (L[vi, vi] * L[vi, vi] + T.float32(1))
