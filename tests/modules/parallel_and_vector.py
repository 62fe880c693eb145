from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((8, 64), "float32"), B: T.Buffer((8, 64), "float32")):
        for i in T.parallel(8):
            for jo in T.serial(4):
                for ji in T.vectorized(16):
                    with T.sblock("b"):
                        vi = T.axis.spatial(8, i)
                        vj = T.axis.spatial(64, jo * 16 + ji)
                        B[vi, vj] = A[vi, vj] * T.float32(3)
