from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((16,), "float32"), M: T.Buffer((16,), "bool"), B: T.Buffer((16,), "float32")):
        for i in range(16):
            with T.sblock("b"):
                vi = T.axis.spatial(16, i)
                M[vi] = A[vi] > T.float32(0)
        for i in range(16):
            with T.sblock("c"):
                vi = T.axis.spatial(16, i)
                B[vi] = T.Select(M[vi], A[vi], T.float32(0))
