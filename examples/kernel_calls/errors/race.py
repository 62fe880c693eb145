@I.ir_module
class Module:
    @T.prim_func
    def add_product(a: T.Buffer((16, 64), "float32"), b: T.Buffer((64, 64), "float32"), y: T.Buffer((16, 64), "float32")):
        for i, j, k in T.grid(16, 64, 64):
            y[i, j] = y[i, j] + a[i, k] * b[k, j]

    @T.prim_func
    def main(X: T.Buffer((4, 16, 64), "float32"), W: T.Buffer((4, 64, 64), "float32"), Y: T.Buffer((16, 64), "float32")):
        for k in T.parallel(4):
            T.call_tir(cls.add_product, X[k, 0:16, 0:64], W[k, 0:64, 0:64], Y)
