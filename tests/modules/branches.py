from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(16):
            with T.sblock("b"):
                vi = T.axis.spatial(16, i)
                if A[vi] > T.float32(0.5):
                    B[vi] = A[vi]
                else:
                    if vi % 2 == 0:
                        B[vi] = T.float32(0)
                    else:
                        B[vi] = -A[vi]
