from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            x = A[i] * T.float32(2)
            y = x + T.float32(1)
            x = y * y
            B[i] = x - y
