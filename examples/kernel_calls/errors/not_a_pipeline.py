@I.ir_module
class Module:
    @T.prim_func
    def scale(x: T.Buffer((16, 64), "float32"), y: T.Buffer((16, 64), "float32")):
        for i, j in T.grid(16, 64):
            y[i, j] = x[i, j] * T.float32(2)

    @T.prim_func
    def main(X: T.Buffer((64, 64), "float32"), H: T.Buffer((16, 64), "float32"), Y: T.Buffer((64, 64), "float32")):
        cls = Module
        for t in T.serial(4, annotations={"software_pipeline_stage": [0, 1]}):
            T.call_tir(cls.scale, X[t * 16:t * 16 + 16, 0:64], H)
            T.call_tir(cls.scale, H, Y[t * 16:t * 16 + 16, 0:64])
