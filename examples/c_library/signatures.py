# The library's functions as nn.h declares them, one signature for each: what its scalars, arrays and structs get is found by name, as
# an attribute of the operators that a call stands for, a dimension of a buffer, or a number that the pattern captured.
from tenon.script import ir as I, tir as T


@I.ir_module
class Nn:
    @T.extern_func
    def conv2d(
        x: T.Buffer(("n", "c", "h", "w"), "float32"), weight: T.Buffer(("o", "depth", "kh", "kw"), "float32"),
        bias: T.Buffer(("o",), "float32"), y: T.Buffer(("n", "o", "oh", "ow"), "float32"),
        patch: T.Buffer(("depth * kh * kw", "ow"), "float32"),
        conv: T.Struct("nn_conv_params", n="int32", c="int32", h="int32", w="int32", o="int32", kh="int32", kw="int32",
                       oh="int32", ow="int32", strides="int32[2]", padding="int32[4]", dilation="int32[2]", groups="int32"),
    ):
        T.func_attr({"symbol": "nn_conv2d", "effects": {"y": "out", "patch": "scratch"}, "returns": "int32"})

    @T.extern_func
    def conv2d_relu(
        x: T.Buffer(("n", "c", "h", "w"), "float32"), weight: T.Buffer(("o", "depth", "kh", "kw"), "float32"),
        bias: T.Buffer(("o",), "float32"), y: T.Buffer(("n", "o", "oh", "ow"), "float32"),
        patch: T.Buffer(("depth * kh * kw", "ow"), "float32"),
        conv: T.Struct("nn_conv_params", n="int32", c="int32", h="int32", w="int32", o="int32", kh="int32", kw="int32",
                       oh="int32", ow="int32", strides="int32[2]", padding="int32[4]", dilation="int32[2]", groups="int32"),
    ):
        T.func_attr({"symbol": "nn_conv2d_relu", "effects": {"y": "out", "patch": "scratch"}, "returns": "int32"})

    @T.extern_func
    def conv2d_clip(
        x: T.Buffer(("n", "c", "h", "w"), "float32"), weight: T.Buffer(("o", "depth", "kh", "kw"), "float32"),
        bias: T.Buffer(("o",), "float32"), y: T.Buffer(("n", "o", "oh", "ow"), "float32"),
        patch: T.Buffer(("depth * kh * kw", "ow"), "float32"),
        conv: T.Struct("nn_conv_params", n="int32", c="int32", h="int32", w="int32", o="int32", kh="int32", kw="int32",
                       oh="int32", ow="int32", strides="int32[2]", padding="int32[4]", dilation="int32[2]", groups="int32"),
        low: T.float32, high: T.float32,
    ):
        T.func_attr({"symbol": "nn_conv2d_clip", "effects": {"y": "out", "patch": "scratch"}, "returns": "int32"})

    # One C function for two composites, which differ in what they give it.
    @T.extern_func
    def depthwise2d(
        x: T.Buffer(("n", "c", "h", "w"), "float32"), weight: T.Buffer(("o", 1, "kh", "kw"), "float32"),
        bias: T.Buffer(("o",), "float32"), y: T.Buffer(("n", "o", "oh", "ow"), "float32"),
        conv: T.Struct("nn_conv_params", n="int32", c="int32", h="int32", w="int32", o="int32", kh="int32", kw="int32",
                       oh="int32", ow="int32", strides="int32[2]", padding="int32[4]", dilation="int32[2]", groups="int32"),
        activation: T.int32, low: T.float32, high: T.float32,
    ):
        T.func_attr({"symbol": "nn_depthwise2d", "effects": {"y": "out"}, "returns": "int32",
                     "enums": {"NN_NONE": 0}, "args": {"activation": "NN_NONE", "low": 0.0, "high": 0.0}})

    @T.extern_func
    def depthwise2d_clip(
        x: T.Buffer(("n", "c", "h", "w"), "float32"), weight: T.Buffer(("o", 1, "kh", "kw"), "float32"),
        bias: T.Buffer(("o",), "float32"), y: T.Buffer(("n", "o", "oh", "ow"), "float32"),
        conv: T.Struct("nn_conv_params", n="int32", c="int32", h="int32", w="int32", o="int32", kh="int32", kw="int32",
                       oh="int32", ow="int32", strides="int32[2]", padding="int32[4]", dilation="int32[2]", groups="int32"),
        activation: T.int32, low: T.float32, high: T.float32,
    ):
        T.func_attr({"symbol": "nn_depthwise2d", "effects": {"y": "out"}, "returns": "int32",
                     "enums": {"NN_CLIP": 2}, "args": {"activation": "NN_CLIP"}})

    @T.extern_func
    def max_pool2d(
        x: T.Buffer(("n", "c", "h", "w"), "float32"), y: T.Buffer(("n", "c", "oh", "ow"), "float32"),
        planes: T.int32, h: T.int32, w: T.int32, oh: T.int32, ow: T.int32,
        pool_size: T.Array(2, "int64"), strides: T.Array(2, "int64"), padding: T.Array(4, "int64"), dilation: T.Array(2, "int64"),
    ):
        T.func_attr({"symbol": "nn_max_pool2d", "effects": {"y": "out"}, "args": {"planes": "n * c"}})

    @T.extern_func
    def avg_pool2d(
        x: T.Buffer(("n", "c", "h", "w"), "float32"), y: T.Buffer(("n", "c", "oh", "ow"), "float32"),
        planes: T.int32, h: T.int32, w: T.int32, oh: T.int32, ow: T.int32,
        pool_size: T.Array(2, "int64"), strides: T.Array(2, "int64"), padding: T.Array(4, "int64"), count_include_pad: T.int32,
    ):
        T.func_attr({"symbol": "nn_avg_pool2d", "effects": {"y": "out"}, "args": {"planes": "n * c"}})

    @T.extern_func
    def global_avg_pool(
        x: T.Buffer(("n", "c", "h", "w"), "float32"), y: T.Buffer(("n", "c", 1, 1), "float32"), planes: T.int32, size: T.int32,
    ):
        T.func_attr({"symbol": "nn_global_avg_pool", "effects": {"y": "out"}, "args": {"planes": "n * c", "size": "h * w"}})

    @T.extern_func
    def dense(
        x: T.Buffer(("m", "k"), "float32"), weight: T.Buffer(("n", "k"), "float32"), bias: T.Buffer(("n",), "float32"),
        y: T.Buffer(("m", "n"), "float32"), m: T.int32, n: T.int32, k: T.int32,
    ):
        T.func_attr({"symbol": "nn_dense", "effects": {"y": "out"}})

    @T.extern_func
    def add_relu(
        a: T.Buffer(("n", "c", "h", "w"), "float32"), b: T.Buffer(("n", "c", "h", "w"), "float32"),
        y: T.Buffer(("n", "c", "h", "w"), "float32"), size: T.int32,
    ):
        T.func_attr({"symbol": "nn_add_relu", "effects": {"y": "out"}, "in_place": True, "args": {"size": "n * c * h * w"}})

    @T.extern_func
    def add(
        a: T.Buffer(("n", "c", "h", "w"), "float32"), b: T.Buffer(("n", "c", "h", "w"), "float32"),
        y: T.Buffer(("n", "c", "h", "w"), "float32"), size: T.int32,
    ):
        T.func_attr({"symbol": "nn_add", "effects": {"y": "out"}, "in_place": True, "args": {"size": "n * c * h * w"}})

    @T.extern_func
    def softmax(
        x: T.Buffer(("rows", "size"), "float32"), y: T.Buffer(("rows", "size"), "float32"),
        rows: T.int32, size: T.int32, axis: T.int32,
    ):
        T.func_attr({"symbol": "nn_softmax", "effects": {"y": "out"}, "in_place": True, "returns": "int32"})
