from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((37,), "float32"), B: T.Buffer((37,), "float32")):
        for i, j in T.grid(5, 8):
            with T.sblock("B"):
                vi = T.axis.spatial(37, i * 8 + j)
                T.where(i * 8 + j < 37)
                B[vi] = T.exp(A[vi])
