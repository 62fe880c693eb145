# What the replacement calls comes along.
@R.rewriter
class CallsKernel:
    @R.function
    def pattern(x: R.Tensor((4, 4), "float32")):
        y = R.exp(x)
        return y

    @R.function
    def replacement(x: R.Tensor((4, 4), "float32")):
        y = R.call_dps_packed("my_exp", (x,), out_sinfo=R.Tensor((4, 4), "float32"))
        return y
# SEARCHED
@R.function
def main(x: R.Tensor((4, 4), "float32"), y: R.Tensor((4, 4), "float32")):
    with R.dataflow():
        a = R.exp(x)
        b = R.exp(a)
        R.output(b)
    return b
# EXPECT
from tenon.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4, 4), dtype="float32"), y: R.Tensor((4, 4), dtype="float32")):
        with R.dataflow():
            a: R.Tensor((4, 4), dtype="float32") = R.call_dps_packed("my_exp", (x,), out_sinfo=R.Tensor((4, 4), dtype="float32"))
            b: R.Tensor((4, 4), dtype="float32") = R.call_dps_packed("my_exp", (a,), out_sinfo=R.Tensor((4, 4), dtype="float32"))
            R.output(b)
        return b
