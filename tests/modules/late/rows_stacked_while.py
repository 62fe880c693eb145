# SPDX-License-Identifier: Apache-2.0
# What a loop with a condition stacks: the number of iterations is a dimension beside one of an input.
from tenon.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function(private=True)
    def body(dims: R.Shape(["i", "m"]), go: R.Tensor((), "bool"), h: R.Tensor(("m", 3), "float32"), c: R.Tensor((), "bool")):
        m = T.int64()
        t = R.tanh(h)
        return (c, t, t, t)

    @R.function
    def main(x: R.Tensor(("m", 3), "float32"), go: R.Tensor((), "bool")):
        m = T.int64()
        k = T.int64()
        l = T.int64()
        cls = Module
        lv = R.loop(cls.body, R.prim_value(3), R.shape([m]), (go, x), (), (go,), while_first=True,
                    sinfo_args=(R.Tuple(R.Tensor((), "bool"), R.Tensor((m, 3), "float32"),
                                        R.Tensor(dtype="float32", ndim=3), R.Tensor(dtype="float32", ndim=3)),))
        first = R.match_cast(lv[2], R.Tensor((k, m, 3), "float32"))
        second = R.match_cast(lv[3], R.Tensor((l, m, 3), "float32"))
        return (lv[1], first, R.exp(second))
