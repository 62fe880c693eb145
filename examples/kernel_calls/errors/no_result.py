@I.ir_module
class Module:
    @T.prim_func
    def add(x: T.Buffer((16, 64), "float32"), y: T.Buffer((16, 64), "float32")):
        for i, j in T.grid(16, 64):
            y[i, j] = y[i, j] + x[i, j]

    @T.prim_func
    def main(X: T.Buffer((16, 64), "float32"), Y: T.Buffer((16, 64), "float32")):
        h = T.call_tir(cls.add, X)
        T.call_tir(cls.add, h, Y)
