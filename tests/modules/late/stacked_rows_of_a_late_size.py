# SPDX-License-Identifier: Apache-2.0
# Tensors of a size that the program computes, stacked where they are given out: of three dimensions.
from tenon.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function(private=True)
    def body(dims: R.Shape(["i", "n"]), s: R.Tensor((), "float32"), c: R.Tensor(("n", 3), "float32")):
        n = T.int64()
        t = R.tanh(s)
        return (t, c)

    @R.function
    def main(x: R.Tensor((6, 3), "float32"), k: R.Tensor((1, 1), "uint8"), s: R.Tensor((), "float32")):
        n = T.int64()
        cls = Module
        count = R.match_cast(R.tensor_to_shape(R.sum(R.astype(k, dtype="int64"), axis=[0])), R.Shape([n]))
        c = R.match_cast(R.strided_slice(x, axes=[0], begin=[0], end=[n]), R.Tensor((n, 3), "float32"))
        lv = R.loop(cls.body, R.prim_value(2), R.shape([n]), (s,), (), (c,),
                    sinfo_args=(R.Tuple(R.Tensor((), "float32"), R.Tensor((2, n, 3), "float32")),))
        return (lv[0], lv[1])
