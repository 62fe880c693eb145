from tvm.script import ir as I, relax as R, tirx as T


# not TVM's: what does not fit saturates, and NaN gives 0
# Around the least and the greatest number of each type, in vectors; infinities and NaN.
@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((80,), "float32"), B: T.Buffer((80,), "int8"), C: T.Buffer((80,), "uint8"), D: T.Buffer((80,), "int16"), E: T.Buffer((80,), "uint16"), F: T.Buffer((80,), "int32"), G: T.Buffer((80,), "uint32"), H: T.Buffer((80,), "int64")):
        for o in range(5):
            for i in T.vectorized(16):
                with T.sblock("b"):
                    vi = T.axis.spatial(80, o * 16 + i)
                    B[vi] = T.Cast("int8", T.Select(vi < 8, A[vi] / T.float32(0), T.Cast("float32", vi - 44) * T.float32(4.0) + A[vi] * T.float32(0.4)))
                    C[vi] = T.Cast("uint8", T.Select(vi < 8, A[vi] / T.float32(0), T.Cast("float32", vi - 44) * T.float32(8.0) + A[vi] * T.float32(0.4)))
                    D[vi] = T.Cast("int16", T.Select(vi < 8, A[vi] / T.float32(0), T.Cast("float32", vi - 44) * T.float32(1024.0) + A[vi] * T.float32(0.4)))
                    E[vi] = T.Cast("uint16", T.Select(vi < 8, A[vi] / T.float32(0), T.Cast("float32", vi - 44) * T.float32(2048.0) + A[vi] * T.float32(0.4)))
                    F[vi] = T.Cast("int32", T.Select(vi < 8, A[vi] / T.float32(0), T.Cast("float32", vi - 44) * T.float32(67108864.0) + A[vi] * T.float32(0.4)))
                    G[vi] = T.Cast("uint32", T.Select(vi < 8, A[vi] / T.float32(0), T.Cast("float32", vi - 44) * T.float32(134217728.0) + A[vi] * T.float32(0.4)))
                    H[vi] = T.Cast("int64", T.Select(vi < 8, A[vi] / T.float32(0), T.Cast("float32", vi - 44) * T.float32(2.8823037615171174e+17) + A[vi] * T.float32(0.4)))
