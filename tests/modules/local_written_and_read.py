from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8,), "float32")):
        t = T.sblock_alloc_buffer((4,), "float32")
        for i in range(8):
            with T.sblock("b"):
                vi = T.axis.spatial(8, i)
                for k in range(4):
                    t[k] = A[vi, k] * T.float32(2)
                B[vi] = t[0] + t[1] + t[2] + t[3]
