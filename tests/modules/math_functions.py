from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((16,), "float32"), B: T.Buffer((9, 16), "float32")):
        for i in range(16):
            with T.sblock("b"):
                vi = T.axis.spatial(16, i)
                B[0, vi] = T.exp(A[vi])
                B[1, vi] = T.log(T.fabs(A[vi]) + T.float32(1))
                B[2, vi] = T.sqrt(T.fabs(A[vi]))
                B[3, vi] = T.tanh(A[vi])
                B[4, vi] = T.sigmoid(A[vi])
                B[5, vi] = T.erf(A[vi])
                B[6, vi] = T.floor(A[vi] * T.float32(4)) + T.ceil(A[vi])
                B[7, vi] = T.pow(T.fabs(A[vi]), T.float32(1.5))
                B[8, vi] = T.sin(A[vi]) * T.cos(A[vi])
