from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(N: T.Buffer((4,), "int32"), A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.sblock("z"):
                vi = T.axis.spatial(4, i)
                B[vi] = T.float32(0)
            for k in range(N[i] % 9):
                with T.sblock("s"):
                    vi = T.axis.spatial(4, i)
                    vk = T.axis.reduce(8, k)
                    B[vi] = B[vi] + A[vi, vk]
