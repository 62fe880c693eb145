from tvm.script import ir as I, tir as T


# Kernels that add to what stands in their output, as tiles of a larger product do: without T.init.
# not TVM's: T.call_tir in a kernel.
@I.ir_module
class Module:
    @T.prim_func
    def product(x: T.Buffer((19, 24), "float32"), w: T.Buffer((24, 40), "float32"), s: T.handle):
        m = T.int64()
        y = T.match_buffer(s, (19, 40), "float32", strides=[m, 1])
        for i, j, k in T.grid(19, 40, 24):
            with T.block("product"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                y[vi, vj] = y[vi, vj] + x[vi, vk] * w[vk, vj]

    @T.prim_func
    def main(
        X: T.Buffer((38, 48), "float32"),
        W: T.Buffer((48, 80), "float32"),
        V: T.Buffer((6, 50, 33), "float32"),
        Q: T.Buffer((23, 37), "int32"),
        P: T.Buffer((37,), "float32"),
        Y: T.Buffer((38, 80), "float32"),
        rows: T.Buffer((6, 50), "float32"),
        tops: T.Buffer((50, 33), "float32"),
        counts: T.Buffer((37,), "int32"),
        once: T.Buffer((1,), "float32"),
        window: T.Buffer((6, 48, 31), "float32"),
    ):
        x = T.alloc_buffer((19, 24), "float32")
        w = T.alloc_buffer((24, 40), "float32")
        for a, b in T.grid(38, 80):
            with T.block("start"):
                va, vb = T.axis.remap("SS", [a, b])
                Y[va, vb] = T.float32(1)
        for a, b, c in T.grid(6, 48, 31):
            with T.block("start_window"):
                va, vb, vc = T.axis.remap("SSS", [a, b, c])
                window[va, vb, vc] = V[va, vb, vc]
        for a, b in T.grid(6, 50):
            with T.block("start_rows"):
                va, vb = T.axis.remap("SS", [a, b])
                rows[va, vb] = V[va, vb, 0]
        for a, b in T.grid(50, 33):
            with T.block("start_tops"):
                va, vb = T.axis.remap("SS", [a, b])
                tops[va, vb] = T.float32(0.25)
        for a in range(37):
            with T.block("start_counts"):
                va = T.axis.spatial(37, a)
                counts[va] = va
        once[0] = T.float32(3)
        for i, j, k in T.grid(2, 2, 2):
            for a, b in T.grid(19, 24):
                x[a, b] = X[i * 19 + a, k * 24 + b]
            for a, b in T.grid(24, 40):
                w[a, b] = W[k * 24 + a, j * 40 + b]
            T.call_tir(cls.product, x, w, Y[i * 19 : i * 19 + 19, j * 40 : j * 40 + 40])
        for a, b, k in T.grid(6, 50, 33):
            with T.block("row_sums"):
                va, vb, vk = T.axis.remap("SSR", [a, b, k])
                rows[va, vb] = rows[va, vb] + V[va, vb, vk]
        for a, b, k in T.grid(50, 33, 6):
            with T.block("maxima"):
                va, vb, vk = T.axis.remap("SSR", [a, b, k])
                tops[va, vb] = T.max(V[vk, va, vb], tops[va, vb])
        for a, k in T.grid(37, 23):
            with T.block("columns"):
                va, vk = T.axis.remap("SR", [a, k])
                counts[va] = counts[va] + Q[vk, va]
        for k in range(37):
            with T.block("product_of_all"):
                vk = T.axis.reduce(37, k)
                once[0] = once[0] * (P[vk] + T.float32(2))
        for a, b, c, u, v in T.grid(6, 48, 31, 3, 3):
            with T.block("window"):
                va, vb, vc, vu, vv = T.axis.remap("SSSRR", [a, b, c, u, v])
                window[va, vb, vc] = window[va, vb, vc] + V[va, vb + vu, vc + vv]
