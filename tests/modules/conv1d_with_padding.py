from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((2, 3, 20), "float32"), W: T.Buffer((4, 3, 5), "float32"), C: T.Buffer((2, 4, 20), "float32")):
        P = T.sblock_alloc_buffer((2, 3, 24), "float32")
        for n, c, x in T.grid(2, 3, 24):
            with T.sblock("P"):
                vn, vc, vx = T.axis.remap("SSS", [n, c, x])
                P[vn, vc, vx] = T.if_then_else(2 <= vx and vx < 22, A[vn, vc, vx - 2], T.float32(0))
        for n, o, x, c, k in T.grid(2, 4, 20, 3, 5):
            with T.sblock("C"):
                vn, vo, vx, vc, vk = T.axis.remap("SSSRR", [n, o, x, c, k])
                with T.init():
                    C[vn, vo, vx] = T.float32(0)
                C[vn, vo, vx] = C[vn, vo, vx] + P[vn, vc, vx + vk] * W[vo, vc, vk]
