# Tried in the order of the composition; both until nothing changes.
@R.rewriter
class DoubleNegation:
    @R.function
    def pattern(x: R.Tensor):
        y = R.negative(R.negative(x))
        return y

    @R.function
    def replacement(x: R.Tensor):
        z = R.add(x, R.const(0.0, "float32"))
        return z


@R.rewriter
class NegatedDifference:
    @R.function
    def pattern(x: R.Tensor, y: R.Tensor):
        z = R.negative(R.subtract(x, y))
        return z

    @R.function
    def replacement(x: R.Tensor, y: R.Tensor):
        z = R.subtract(y, x)
        return z


rewriter = NegatedDifference | DoubleNegation
# SEARCHED
@R.function
def main(x: R.Tensor((4, 4), "float32"), y: R.Tensor((4, 4), "float32")):
    with R.dataflow():
        a = R.subtract(x, y)
        b = R.negative(a)
        c = R.negative(b)
        d = R.negative(c)
        e = R.negative(d)
        R.output(e)
    return e
# EXPECT
from tenon.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4, 4), dtype="float32"), y: R.Tensor((4, 4), dtype="float32")):
        with R.dataflow():
            e: R.Tensor((4, 4), dtype="float32") = R.subtract(x, y)
            R.output(e)
        return e
