# The libraries' functions: their parameters in C's order. Sizes follow from the buffers.
from tenon.script import ir as I, tir as T


@I.ir_module
class Libraries:
    @T.extern_func
    def conv_bias_relu(
        x: T.Buffer((1, "c", "h", "w"), "float32"), k: T.Buffer(("o", "c", 3, 3), "float32"),
        b: T.Buffer(("o",), "float32"), y: T.Buffer((1, "o", "h", "w"), "float32"),
        c: T.int32, o: T.int32, h: T.int32, w: T.int32,
    ):
        T.func_attr({"effects": {"y": "out"}})

    @T.extern_func
    def dense_bias(
        x: T.Buffer((1, "n"), "float32"), w: T.Buffer(("m", "n"), "float32"),
        b: T.Buffer(("m",), "float32"), y: T.Buffer((1, "m"), "float32"), m: T.int32, n: T.int32,
    ):
        T.func_attr({"effects": {"y": "out"}})
