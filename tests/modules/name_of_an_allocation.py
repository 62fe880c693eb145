from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        acc = T.alloc_buffer((1,), "float32")
        acc = T.float32(0)
        for i in range(4):
            acc = acc[0] + A[i]
            B[i] = acc[0]
