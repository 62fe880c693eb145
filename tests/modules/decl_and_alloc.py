from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        buf = T.alloc_buffer((8,), "float32")
        V = T.decl_buffer((2, 4), "float32", data=buf.data)
        for i in range(8):
            buf[i] = A[i] * T.float32(2)
        for i, j in T.grid(2, 4):
            B[i * 4 + j] = V[i, j]
