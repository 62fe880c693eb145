# SPDX-License-Identifier: Apache-2.0
# A number that is read from a constant, and an output of an expression of it: no input has a symbol.
from tenon.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), "float32")):
        k = T.int64()
        n = R.match_cast(R.tensor_to_shape(R.const(3, "int64")), R.Shape([k]))
        y = R.full(R.shape([k]), R.const(1.5, "float32"), dtype="float32")
        z = R.nn.pad(y, pad_width=[2, 1])
        return (R.exp(x), R.exp(z))
