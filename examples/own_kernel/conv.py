# A convolution as ONNX defines it, bias included.
from tvm.script import tir as T


@T.prim_func
def my_conv(x: T.Buffer(("n", "c", "h", "w"), "float32"), k: T.Buffer(("o", "c", "r", "s"), "float32"), b: T.Buffer(("o",), "float32"),
            y: T.Buffer(("n", "o", "(h + pads_0 + pads_2 - r) // strides_0 + 1", "(w + pads_1 + pads_3 - s) // strides_1 + 1"), "float32"),
            strides_0: T.int64, strides_1: T.int64, pads_0: T.int64, pads_1: T.int64, pads_2: T.int64, pads_3: T.int64):
    T.func_attr({"op": "Conv", "op_attrs": {"dilations": 1, "group": 1}, "op_when": "o % 16 == 0"})
    n = T.int64()
    c = T.int64()
    h = T.int64()
    w = T.int64()
    o = T.int64()
    r = T.int64()
    s = T.int64()
    p = T.alloc_buffer((n, c, h + pads_0 + pads_2, w + pads_1 + pads_3), "float32")
    for i, j, u, v in T.grid(n, c, h + pads_0 + pads_2, w + pads_1 + pads_3):
        with T.block("pad"):
            vi, vj, vu, vv = T.axis.remap("SSSS", [i, j, u, v])
            p[vi, vj, vu, vv] = T.if_then_else(vu >= pads_0 and vu < h + pads_0 and vv >= pads_1 and vv < w + pads_1,
                                               x[vi, vj, vu - pads_0, vv - pads_1], T.float32(0))
    for i, j, u, v, d, e, f in T.grid(n, o, y.shape[2], y.shape[3], c, r, s):
        with T.block("conv"):
            vi, vj, vu, vv, vd, ve, vf = T.axis.remap("SSSSRRR", [i, j, u, v, d, e, f])
            with T.init():
                y[vi, vj, vu, vv] = b[vj]
            y[vi, vj, vu, vv] = y[vi, vj, vu, vv] + p[vi, vd, vu * strides_0 + ve, vv * strides_1 + vf] * k[vj, vd, ve, vf]
