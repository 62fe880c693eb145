# SPDX-License-Identifier: Apache-2.0
# ERROR: result 2 of a loop is stacked from the end, whose place is not known before the loop ends
from tenon.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function(private=True)
    def body(dims: R.Shape(["i"]), go: R.Tensor((), "bool"), h: R.Tensor((3,), "float32")):
        t = R.tanh(h)
        return (go, t, t)

    @R.function
    def main(x: R.Tensor((3,), "float32"), go: R.Tensor((), "bool")):
        k = T.int64()
        cls = Module
        lv = R.loop(cls.body, R.prim_value(3), R.shape([]), (go, x), (), (), while_first=True, reversed_outputs=[0],
                    sinfo_args=(R.Tuple(R.Tensor((), "bool"), R.Tensor((3,), "float32"),
                                        R.Tensor(dtype="float32", ndim=2)),))
        stacked = R.match_cast(lv[2], R.Tensor((k, 3), "float32"))
        return (lv[1], stacked)
