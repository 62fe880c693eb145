# C = A B / 2 by tiles: each of 16 tiles of C is a sum of four products of tiles, added up in place.
from tenon.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    # y = x / 2, for a tile of a wider buffer.
    @T.prim_func(private=True)
    def half(var_x: T.handle, y: T.Buffer((64, 64), "float32")):
        s = T.int64()
        x = T.match_buffer(var_x, (64, 64), strides=[s, 1])
        for i, j in T.grid(64, 64):
            with T.block("half"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = x[vi, vj] * T.float32(0.5)

    # y = y + a b: no T.init(), so it goes on from what stands in y.
    @T.prim_func(private=True)
    def add_product(a: T.Buffer((64, 64), "float32"), var_b: T.handle, var_y: T.handle):
        s = T.int64()
        t = T.int64()
        b = T.match_buffer(var_b, (64, 64), strides=[s, 1])
        y = T.match_buffer(var_y, (64, 64), strides=[t, 1])
        for i, j, k in T.grid(64, 64, 64):
            with T.block("product"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                y[vi, vj] = y[vi, vj] + a[vi, vk] * b[vk, vj]

    @T.prim_func
    def main(A: T.Buffer((256, 256), "float32"), B: T.Buffer((256, 256), "float32"), C: T.Buffer((256, 256), "float32")):
        cls = Module
        for tile in T.parallel(16):
            for i, j in T.grid(64, 64):
                C[tile // 4 * 64 + i, tile % 4 * 64 + j] = T.float32(0)
            for k in range(4):
                a = T.call_tir(cls.half, A[tile // 4 * 64:tile // 4 * 64 + 64, k * 64:k * 64 + 64])
                T.call_tir(
                    cls.add_product,
                    a,
                    B[k * 64:k * 64 + 64, tile % 4 * 64:tile % 4 * 64 + 64],
                    C[tile // 4 * 64:tile // 4 * 64 + 64, tile % 4 * 64:tile % 4 * 64 + 64],
                )
