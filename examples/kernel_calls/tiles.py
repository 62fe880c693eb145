# A tiled two-layer network, written as kernels that call kernels.
from tenon.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    # One tile of a dense layer with a bias: y = x w + b. Any number of rows, any width.
    @T.prim_func(private=True)
    def dense(var_x: T.handle, var_w: T.handle, var_b: T.handle, var_y: T.handle):
        m = T.int64()
        k = T.int64()
        n = T.int64()
        x = T.match_buffer(var_x, (m, k))
        w = T.match_buffer(var_w, (k, n))
        b = T.match_buffer(var_b, (n,))
        y = T.match_buffer(var_y, (m, n))
        for i in range(m):
            for j in range(n):
                y[i, j] = b[j]
            for p, j in T.grid(k, n):
                y[i, j] = y[i, j] + x[i, p] * w[p, j]

    # The largest element of a row; a call of it stands in an expression.
    @T.prim_func(private=True)
    def largest(row: T.Buffer((64,), "float32")) -> T.float32:
        best = T.decl_buffer((1,), "float32", scope="local")
        best[0] = row[0]
        for i in range(1, 64):
            best[0] = T.max(best[0], row[i])
        return best[0]

    # x - max(x), row by row. Its parameter has a symbolic stride, so it takes columns of a wider buffer too.
    @T.prim_func(private=True)
    def shift(var_x: T.handle, y: T.Buffer((16, 64), "float32")):
        cls = Module
        stride = T.int64()
        x = T.match_buffer(var_x, (16, 64), strides=[stride, 1])
        for i in range(16):
            top: T.float32 = T.call_tir(cls.largest, x[i, 0:64])
            for j in range(64):
                y[i, j] = x[i, j] - top

    # Tile by tile: the first layer, then the second. `h` lives for one tile.
    @T.prim_func
    def network(X: T.Buffer((256, 64), "float32"), W: T.Buffer((64, 96), "float32"), B: T.Buffer((96,), "float32"), Y: T.Buffer((256, 64), "float32")):
        cls = Module
        for t in T.serial(16, annotations={"software_pipeline_stage": [0, 1]}):
            with T.block("tile"):
                h = T.alloc_buffer((16, 96), "float32")
                T.call_tir(cls.dense, X[t * 16:t * 16 + 16, 0:64], W, B, h)
                T.call_tir(cls.shift, h[0:16, 16:80], Y[t * 16:t * 16 + 16, 0:64])

    @R.function
    def main(x: R.Tensor((256, 64), "float32"), w: R.Tensor((64, 96), "float32"), b: R.Tensor((96,), "float32")) -> R.Tensor((256, 64), "float32"):
        cls = Module
        with R.dataflow():
            y = R.call_tir(cls.network, (x, w, b), out_sinfo=R.Tensor((256, 64), "float32"))
            R.output(y)
        return y
