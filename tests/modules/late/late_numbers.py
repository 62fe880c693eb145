# SPDX-License-Identifier: Apache-2.0
# The number of positive elements, which sizes memory and an output when part of the program has run;
# and one with a bound, for which memory is planned before.
from tenon.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(
        x: R.Tensor((6, 5), "float32")
    ) -> R.Tuple(
        R.Tensor(ndim=2, dtype="float32"),
        R.Tensor((5,), "float32"),
    ):
        count = T.int64()
        below = T.int64()
        positive = R.astype(R.greater(x, R.const(0.0, "float32")), dtype="int64")
        found = R.match_cast(R.tensor_to_shape(R.sum(positive)), R.Shape([count]))
        places = R.arange(R.prim_value(0), R.prim_value(count), R.prim_value(1), dtype="float32")
        table = R.add(R.reshape(places, R.shape([count, 1])), R.mean(x, axis=[0], keepdims=True))
        rows = R.sum(R.astype(R.greater(R.sum(x, axis=[1]), R.const(0.0, "float32")), dtype="int64"))
        few = R.match_cast(R.tensor_to_shape(rows), R.Shape([below]))
        lv = R.assert_op(R.prim_value(below <= 6), R.str("more rows than there are"))
        doubled = R.exp(R.strided_slice(x, axes=[0], begin=[0], end=[below]))
        summed = R.sum(doubled, axis=[0])
        return (table, summed)
