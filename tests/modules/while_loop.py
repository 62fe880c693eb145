from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
        for i in range(4):
            n: T.int32 = A[i] + 20
            steps: T.int32 = 0
            while n > 1:
                n = T.Select(n % 2 == 0, n // 2, n - 1)
                steps = steps + 1
            B[i] = steps
