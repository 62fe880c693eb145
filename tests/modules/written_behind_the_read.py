from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((9,), "float32"), B: T.Buffer((9,), "float32")):
        last = T.sblock_alloc_buffer((1,), "float32")
        last[0] = T.float32(1)
        for i in range(9):
            B[i] = last[0]
            last[0] = A[i]
