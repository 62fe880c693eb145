from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((32, 32), "float32"), B: T.Buffer((32, 32), "float32"), C: T.Buffer((32, 32), "float32")):
        for io, jo, ko, ii, ji, ki in T.grid(4, 4, 8, 8, 8, 4):
            with T.sblock("C"):
                vi = T.axis.spatial(32, io * 8 + ii)
                vj = T.axis.spatial(32, jo * 8 + ji)
                vk = T.axis.reduce(32, ko * 4 + ki)
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
