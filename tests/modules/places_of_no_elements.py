# SPDX-License-Identifier: Apache-2.0
# None of the places of elements that are not 0, and the distinct ones of no elements.
from tenon.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 5), "float32"), y: R.Tensor((0,), "float32")):
        places = R.nonzero(x, R.shape([0]))
        some = R.nonzero(x, R.shape([4]))
        distinct = R.unique_positions(y, sorted=True)
        return (places, some, distinct[0], distinct[3])
