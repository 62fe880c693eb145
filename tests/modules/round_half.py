from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((16,), "float32"), B: T.Buffer((2, 16), "float32")):
        for i in range(16):
            with T.sblock("b"):
                vi = T.axis.spatial(16, i)
                B[0, vi] = T.round(T.Cast("float32", vi) * T.float32(0.5) - T.float32(2))
                B[1, vi] = T.trunc(A[vi] * T.float32(3)) + T.nearbyint(T.Cast("float32", vi) * T.float32(0.5))
