from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((5, 16), "float32"), B: T.Buffer((5, 16), "float32")):
        for i in range(5):
            for j in range(16):
                with T.sblock("B"):
                    vi = T.axis.spatial(5, i)
                    vj = T.axis.opaque(16, j)
                    B[vi, vj] = T.if_then_else(vj > 0, B[vi, vj - 1], T.float32(0)) + A[vi, vj]
