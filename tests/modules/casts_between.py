from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "int8"), C: T.Buffer((16,), "float16"), D: T.Buffer((16,), "float64")):
        for i in range(16):
            with T.sblock("b"):
                vi = T.axis.spatial(16, i)
                B[vi] = T.Cast("int8", A[vi] * T.float32(10))
                C[vi] = T.Cast("float16", A[vi])
                D[vi] = T.Cast("float64", A[vi]) / T.float64(3)
