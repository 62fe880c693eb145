"""A padded, strided convolution with a bias, in the later spelling."""
from tvm.script import ir as I
from tvm.script import tirx as T

CI, CO, SIZE, STRIDE, PAD = 3, 8, 14, 2, 1
OUT = (SIZE + 2 * PAD - 3) // STRIDE + 1


@I.ir_module(s_tir=True)
class Conv:
    @T.prim_func(s_tir=True)
    def conv2d(
        X: T.Buffer((1, CI, SIZE, SIZE), "float32"),
        W: T.Buffer((CO, CI, 3, 3), "float32"),
        bias: T.Buffer((CO,), "float32"),
        Y: T.Buffer((1, CO, OUT, OUT), "float32"),
    ):
        padded = T.sblock_alloc_buffer((1, CI, SIZE + 2 * PAD, SIZE + 2 * PAD))
        total = T.sblock_alloc_buffer((1, CO, OUT, OUT))
        for n, c, y, x in T.grid(1, CI, SIZE + 2 * PAD, SIZE + 2 * PAD):
            with T.sblock("pad"):
                vn, vc, vy, vx = T.axis.remap("SSSS", [n, c, y, x])
                padded[vn, vc, vy, vx] = T.if_then_else(
                    PAD <= vy < SIZE + PAD and PAD <= vx < SIZE + PAD,
                    X[vn, vc, vy - PAD, vx - PAD],
                    T.float32(0),
                )
        for n, f, y, x, c, ry, rx in T.grid(1, CO, OUT, OUT, CI, 3, 3):
            with T.sblock("conv"):
                vn, vf, vy, vx, *reduced = T.axis.remap("SSSSRRR", [n, f, y, x, c, ry, rx])
                with T.init():
                    total[vn, vf, vy, vx] = T.float32(0)
                total[vn, vf, vy, vx] += (
                    padded[vn, reduced[0], vy * STRIDE + reduced[1], vx * STRIDE + reduced[2]]
                    * W[vf, reduced[0], reduced[1], reduced[2]]
                )
        for n, f, y, x in T.grid(1, CO, OUT, OUT):
            with T.sblock("bias"):
                vn, vf, vy, vx = T.axis.remap("SSSS", [n, f, y, x])
                Y[vn, vf, vy, vx] = total[vn, vf, vy, vx] + bias[vf]
