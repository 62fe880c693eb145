# SPDX-License-Identifier: Apache-2.0
# Bounds of a slice, and widths of a padding, from elements of an input: known before anything runs.
from tenon.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(
        x: R.Tensor((6, 5), "float32"), bounds: R.Tensor((2,), "int32"), wide: R.Tensor((), "uint8")
    ) -> R.Tuple(R.Tensor(ndim=2, dtype="float32"), R.Tensor(ndim=2, dtype="float32")):
        begin = T.int64()
        end = T.int64()
        width = T.int64()
        given = R.tensor_to_shape(bounds)
        numbers = R.match_cast(given, R.Shape([begin, end]))
        sliced = R.strided_slice(x, axes=[0], begin=[begin], end=[end])
        widths = R.match_cast(R.tensor_to_shape(wide), R.Shape([width]))
        padded = R.nn.pad(R.exp(x), R.shape([width, 1, 0, width]), R.max(x))
        return (sliced, padded)
