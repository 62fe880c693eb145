from tenon.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in T.vectorized(4):
            with T.block("b"):
                v = T.axis.spatial(4, i)
                B[v] = A[v] + T.float32(1)
