from tvm.script import ir as I, relax as R, tirx as T


# Every upper half of a float32 with zero, a half and others in the lower half, as each of the small floats.
@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(Noise: T.Buffer((16,), "uint32"), E4M3: T.Buffer((65536,), "uint8"), E4M3Z: T.Buffer((65536,), "uint8"), E5M2: T.Buffer((65536,), "uint8"), E5M2Z: T.Buffer((65536,), "uint8"), E8M0: T.Buffer((65536,), "uint8"), E2M1: T.Buffer((65536,), "uint8")):
        for i in range(65536):
            with T.sblock("b"):
                vi = T.axis.spatial(65536, i)
                E4M3[vi] = T.reinterpret("uint8", T.Cast("float8_e4m3fn", T.reinterpret("float32", (T.Cast("uint32", vi) << T.uint32(16)) | ((Noise[vi // 16 % 16] & T.uint32(3)) << T.uint32(14)) | (Noise[vi // 16 % 16] & T.uint32(1)))))
                E4M3Z[vi] = T.reinterpret("uint8", T.Cast("float8_e4m3fnuz", T.reinterpret("float32", (T.Cast("uint32", vi) << T.uint32(16)) | ((Noise[vi // 16 % 16] & T.uint32(3)) << T.uint32(14)) | (Noise[vi // 16 % 16] & T.uint32(1)))))
                E5M2[vi] = T.reinterpret("uint8", T.Cast("float8_e5m2", T.reinterpret("float32", (T.Cast("uint32", vi) << T.uint32(16)) | ((Noise[vi // 16 % 16] & T.uint32(3)) << T.uint32(14)) | (Noise[vi // 16 % 16] & T.uint32(1)))))
                E5M2Z[vi] = T.reinterpret("uint8", T.Cast("float8_e5m2fnuz", T.reinterpret("float32", (T.Cast("uint32", vi) << T.uint32(16)) | ((Noise[vi // 16 % 16] & T.uint32(3)) << T.uint32(14)) | (Noise[vi // 16 % 16] & T.uint32(1)))))
                E8M0[vi] = T.reinterpret("uint8", T.Cast("float8_e8m0fnu", T.reinterpret("float32", (T.Cast("uint32", vi) << T.uint32(16)) | ((Noise[vi // 16 % 16] & T.uint32(3)) << T.uint32(14)) | (Noise[vi // 16 % 16] & T.uint32(1)))))
                E2M1[vi] = T.reinterpret("uint8", T.Cast("float4_e2m1fn", T.reinterpret("float32", (T.Cast("uint32", vi) << T.uint32(16)) | ((Noise[vi // 16 % 16] & T.uint32(3)) << T.uint32(14)) | (Noise[vi // 16 % 16] & T.uint32(1)))))
