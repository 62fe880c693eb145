from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        t = T.sblock_alloc_buffer((1,), "float32")
        with T.sblock("z"):
            t[0] = T.float32(0)
        for i in range(8):
            with T.sblock("b"):
                vi = T.axis.opaque(8, i)
                t[0] = t[0] + A[vi]
                B[vi] = t[0]
