from tvm.script import ir as I, relax as R, tirx as T


# Every one of the small floats as float32.
@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(First: T.Buffer((1,), "uint8"), E4M3: T.Buffer((256,), "uint32"), E4M3Z: T.Buffer((256,), "uint32"), E5M2: T.Buffer((256,), "uint32"), E5M2Z: T.Buffer((256,), "uint32"), E8M0: T.Buffer((256,), "uint32"), E2M1: T.Buffer((256,), "uint32")):
        for i in range(256):
            with T.sblock("b"):
                vi = T.axis.spatial(256, i)
                E4M3[vi] = T.reinterpret("uint32", T.Cast("float32", T.reinterpret("float8_e4m3fn", T.Cast("uint8", vi) ^ First[0])))
                E4M3Z[vi] = T.reinterpret("uint32", T.Cast("float32", T.reinterpret("float8_e4m3fnuz", T.Cast("uint8", vi) ^ First[0])))
                E5M2[vi] = T.reinterpret("uint32", T.Cast("float32", T.reinterpret("float8_e5m2", T.Cast("uint8", vi) ^ First[0])))
                E5M2Z[vi] = T.reinterpret("uint32", T.Cast("float32", T.reinterpret("float8_e5m2fnuz", T.Cast("uint8", vi) ^ First[0])))
                E8M0[vi] = T.reinterpret("uint32", T.Cast("float32", T.reinterpret("float8_e8m0fnu", T.Cast("uint8", vi) ^ First[0])))
                E2M1[vi] = T.reinterpret("uint32", T.Cast("float32", T.reinterpret("float4_e2m1fn", (T.Cast("uint8", vi) ^ First[0]) & T.uint8(15))))
