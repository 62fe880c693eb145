from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.sblock("b"):
                vi = T.axis.spatial(8, i)
                t = T.sblock_alloc_buffer((1,), "float32", scope="local")
                t[0] = A[vi] * T.float32(2)
                B[vi] = t[0] + T.float32(1)
