from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(I: T.Buffer((50,), "int32"), H: T.Buffer((4,), "int32")):
        for i in range(4):
            with T.sblock("zero"):
                vi = T.axis.spatial(4, i)
                H[vi] = 0
        for i in range(50):
            with T.sblock("count"):
                vi = T.axis.opaque(50, i)
                T.reads(I[vi], H[0:4])
                T.writes(H[0:4])
                H[I[vi] % 4] = H[I[vi] % 4] + 1
