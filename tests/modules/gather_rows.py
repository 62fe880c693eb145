from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((4, 8), "float32"), I: T.Buffer((6,), "int32"), B: T.Buffer((6, 8), "float32")):
        for i, j in T.grid(6, 8):
            with T.sblock("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[0:4, vj], I[vi])
                T.writes(B[vi, vj])
                B[vi, vj] = A[I[vi] % 4, vj]
