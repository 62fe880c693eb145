from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((4, 9), "float32"), B: T.Buffer((4,), "float32"), C: T.Buffer((4,), "int32")):
        for i in range(4):
            total = T.float32(0)
            count = 0
            for j in range(9):
                if A[i, j] > T.float32(0):
                    total = total + A[i, j]
                    count = count + 1
            B[i] = total
            C[i] = count
