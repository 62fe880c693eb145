from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(16):
            with T.sblock("copy"):
                vi = T.axis.spatial(16, i)
                B[vi] = A[vi]
        for i in range(12):
            with T.sblock("b"):
                vi = T.axis.spatial((2, 14), i + 2)
                B[vi] = A[vi - 1] + A[vi + 1]
