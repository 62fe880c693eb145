from tvm.script import ir as I, relax as R, tirx as T


# Sums, comparisons and functions of small floats are those of float32, rounded; integers of 4 and 2 bits wrap.
@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((64,), "uint8"), B: T.Buffer((64,), "uint8"), I8: T.Buffer((64,), "int8"), F: T.Buffer((64,), "float32"), D: T.Buffer((64,), "float64"), Sum: T.Buffer((64,), "uint8"), Max: T.Buffer((64,), "uint8"), Less: T.Buffer((64,), "bool"), Exp: T.Buffer((64,), "uint8"), Four: T.Buffer((64,), "int8"), Shifted: T.Buffer((64,), "int8"), Two: T.Buffer((64,), "uint8"), Wide: T.Buffer((64,), "int32"), Held: T.Buffer((64,), "int8"), Half: T.Buffer((64,), "float16"), Counted: T.Buffer((64,), "int8")):
        I4 = T.alloc_buffer((64,), "int4")
        U2 = T.alloc_buffer((64,), "uint2")
        X = T.alloc_buffer((64,), "float8_e4m3fn")
        for i in range(64):
            with T.sblock("narrow"):
                vi = T.axis.spatial(64, i)
                I4[vi] = T.Cast("int4", I8[vi])
                U2[vi] = T.Cast("uint2", A[vi])
                X[vi] = T.reinterpret("float8_e4m3fn", A[vi] & T.uint8(127))
        for i in range(64):
            with T.sblock("b"):
                vi = T.axis.spatial(64, i)
                Sum[vi] = T.reinterpret("uint8", X[vi] + T.reinterpret("float8_e4m3fn", B[vi]) * X[vi])
                Max[vi] = T.reinterpret("uint8", T.max(X[vi], X[63 - vi]))
                Less[vi] = X[vi] < T.reinterpret("float8_e4m3fn", B[vi])
                Exp[vi] = T.reinterpret("uint8", T.exp(T.reinterpret("float8_e4m3fn", B[vi] & T.uint8(63))))
                Four[vi] = T.Cast("int8", I4[vi] * I4[63 - vi] - T.Cast("int4", U2[vi]))
                Shifted[vi] = T.Cast("int8", T.bitwise_xor(T.shift_right(I4[vi], T.int4(1)), T.shift_left(I4[vi], T.int4(2))))
                Two[vi] = T.Cast("uint8", T.Cast("uint2", I4[vi]) + U2[vi])
                Wide[vi] = T.Cast("int32", I4[vi]) * 1000 + T.Cast("int32", U2[vi])
                Held[vi] = T.Cast("int8", T.Cast("int4", F[vi] * T.float32(10)))
                Half[vi] = T.Cast("float16", D[vi])
                Counted[vi] = T.Cast("int8", T.popcount(I4[vi]) + T.clz(I4[vi]))
