from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((5, 16), "float32"), B: T.Buffer((5, 16), "float32")):
        h = T.sblock_alloc_buffer((5,), "float32")
        for i in range(5):
            with T.sblock("zero"):
                vi = T.axis.spatial(5, i)
                h[vi] = T.float32(0)
        for j in range(16):
            for i in range(5):
                with T.sblock("step"):
                    vi = T.axis.spatial(5, i)
                    vj = T.axis.opaque(16, j)
                    h[vi] = h[vi] * T.float32(0.5) + A[vi, vj]
                    B[vi, vj] = h[vi]
