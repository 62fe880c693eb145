from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((16,), "float16"), B: T.Buffer((16,), "float16"), C: T.Buffer((16,), "float16")):
        for i in range(16):
            with T.sblock("b"):
                vi = T.axis.spatial(16, i)
                C[vi] = A[vi] * B[vi] + A[vi]
