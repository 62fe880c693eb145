from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((40,), "int32"), B: T.Buffer((40,), "int32"), C: T.Buffer((40,), "int32")):
        for i in range(40):
            with T.sblock("b"):
                vi = T.axis.spatial(40, i)
                B[vi] = (A[vi] - 7) // 3 + (A[vi] - 7) % 3 * 100
                C[vi] = T.truncdiv(A[vi] - 7, 3) + T.truncmod(A[vi] - 7, 3) * 100
