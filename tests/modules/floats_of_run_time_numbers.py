# SPDX-License-Identifier: Apache-2.0
# Floats that are computed of numbers which only the run knows: in a condition, and as operands.
from tenon.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((6, 5), "float32"), size: R.Tensor((2,), "int64")) -> R.Tuple(
        R.Tensor(("T.Cast(\"int64\", T.ceil(T.Cast(\"float32\", n) * T.float32(0.75)))",), dtype="float32"),
        R.Tensor((6, 5), dtype="float32"),
    ):
        n = T.int64()
        m = T.int64()
        given = R.tensor_to_shape(size)
        numbers = R.match_cast(given, R.Shape([n, m]))
        known = R.assert_op(
            R.prim_value(T.Cast("float64", n) * T.Cast("float64", m) * T.float64(0.5) <= T.float64(1000.0)),
            R.str("too many elements"),
        )
        rows = T.Cast("int64", T.ceil(T.Cast("float32", n) * T.float32(0.75)))
        filled = R.full(R.shape([rows]), R.prim_value(T.Cast("float32", n) / T.float32(8.0)), dtype="float32")
        clipped = R.clip(x, R.prim_value(T.Cast("float32", m) * T.float32(-0.25)), R.prim_value(T.float32(1.0)))
        return (filled, clipped)
