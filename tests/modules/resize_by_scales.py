# SPDX-License-Identifier: Apache-2.0
# Scales that only the run knows hold beside sizes that are known: these are rounded.
from tenon.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 5), "float32"), s: R.Tensor((1,), "float32")) -> R.Tensor((2, 7), "float32"):
        scales = R.add(R.abs(s), R.const(0.5, "float32"))
        y = R.image.resize(x, R.shape([7]), scales, axes=[1], method="linear")
        return y
