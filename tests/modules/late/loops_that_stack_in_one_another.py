# SPDX-License-Identifier: Apache-2.0
# What an inner loop stacks is stacked twice by the loop around it, of a length that the run decides.
from tenon.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function(private=True)
    def inner(dims: R.Shape(["i"]), h: R.Tensor((9,), "float32")):
        t = R.tanh(h)
        return (t, t)

    @R.function(private=True)
    def outer(dims: R.Shape(["j"]), go: R.Tensor((), "bool"), h: R.Tensor((9,), "float32")):
        cls = Module
        lv = R.loop(cls.inner, R.prim_value(2), R.shape([]), (h,), (), (), reversed_outputs=[0],
                    sinfo_args=(R.Tuple(R.Tensor((9,), "float32"), R.Tensor((2, 9), "float32")),))
        return (go, lv[0], lv[1], lv[1])

    @R.function
    def main(x: R.Tensor((9,), "float32"), go: R.Tensor((), "bool")):
        k = T.int64()
        l = T.int64()
        cls = Module
        on = R.logical_or(go, R.const(True, "bool"))
        lv = R.loop(cls.outer, R.prim_value(3), R.shape([]), (on, x), (), (), while_first=True,
                    sinfo_args=(R.Tuple(R.Tensor((), "bool"), R.Tensor((9,), "float32"),
                                        R.Tensor(dtype="float32", ndim=3), R.Tensor(dtype="float32", ndim=3)),))
        first = R.match_cast(lv[2], R.Tensor((k, 2, 9), "float32"))
        second = R.match_cast(lv[3], R.Tensor((l, 2, 9), "float32"))
        return (first, R.exp(second))
