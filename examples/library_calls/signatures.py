# What toy_sized.c declares: its parameters in C's order, and what it does with them. A composite's
# inputs are x, w, b; the library wants w, x, b.
from tenon.script import ir as I, tir as T


@I.ir_module
class Toy:
    @T.extern_func
    def dense_bias_relu(
        w: T.Buffer(("n", "k"), "float32"), x: T.Buffer(("m", "k"), "float32"),
        b: T.Buffer(("n",), "float32"), y: T.Buffer(("m", "n"), "float32"),
        packed: T.Buffer(("k", "n"), "float32"), m: T.int32, n: T.int32, k: T.int32,
    ):
        T.func_attr({"effects": {"y": "out", "packed": "scratch"}, "inputs": [1, 0, 2], "returns": "int32"})

    @T.extern_func
    def dense_bias(
        w: T.Buffer(("n", "k"), "float32"), x: T.Buffer(("m", "k"), "float32"),
        b: T.Buffer(("n",), "float32"), y: T.Buffer(("m", "n"), "float32"),
        packed: T.Buffer(("k", "n"), "float32"), m: T.int32, n: T.int32, k: T.int32,
    ):
        T.func_attr({"effects": {"y": "out", "packed": "scratch"}, "inputs": [1, 0, 2], "returns": "int32"})
