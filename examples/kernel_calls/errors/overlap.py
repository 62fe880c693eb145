@I.ir_module
class Module:
    @T.prim_func
    def scale(x: T.Buffer((16, 64), "float32"), y: T.Buffer((16, 64), "float32")):
        for i, j in T.grid(16, 64):
            y[i, j] = x[i, j] * T.float32(2)

    @T.prim_func
    def main(X: T.Buffer((64, 64), "float32")):
        cls = Module
        T.call_tir(cls.scale, X[0:16, 0:64], X[8:24, 0:64])
