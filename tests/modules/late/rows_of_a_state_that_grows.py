# SPDX-License-Identifier: Apache-2.0
# A loop stacks rows that are as long as the state of the loop around it, which grows; how many rows there are is not in its type.
from tenon.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function(private=True)
    def row(dims: R.Shape(["j", "m"]), t: R.Tensor(("m",), "float32")):
        with R.dataflow():
            r = R.negative(t)
            R.output(r)
        return (r, r)

    @R.function(private=True)
    def longer(
        dims: R.Shape(["i"]), s: R.Tensor(("m",), "float32"), one: R.Tensor((1,), "float32")
    ):
        m = T.int64()
        n = T.int64(is_size_var=True)
        cls = Module
        lv = R.loop(
            cls.row, R.prim_value(3), R.shape([m]), (s,), (), (),
            sinfo_args=(R.Tuple(R.Tensor((m,), "float32"), R.Tensor(ndim=2, dtype="float32")),),
        )
        rows = R.match_cast(lv[1], R.Tensor((n, m), "float32"))
        sums = R.sum(rows, axis=[0])
        grown = R.concat((sums, one), axis=0)
        return (grown,)

    @R.function
    def main(s: R.Tensor((3,), "float32"), one: R.Tensor((1,), "float32")) -> R.Tensor(ndim=1, dtype="float32"):
        k = T.int64()
        cls = Module
        lv = R.loop(
            cls.longer, R.prim_value(4), R.shape([]), (s,), (), (one,),
            sinfo_args=(R.Tuple(R.Tensor(ndim=1, dtype="float32")),),
        )
        r = R.match_cast(lv[0], R.Tensor((k,), "float32"))
        return r
