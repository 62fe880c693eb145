# A square root of a square is an absolute value; the rest stays.
@R.rewriter
class SqrtOfSquare:
    @R.function
    def pattern(x: R.Tensor):
        y = R.multiply(x, x)
        z = R.sqrt(y)
        return z

    @R.function
    def replacement(x: R.Tensor):
        z = R.abs(x)
        return z
# SEARCHED
@R.function
def main(x: R.Tensor((4, 4), "float32"), y: R.Tensor((4, 4), "float32")):
    with R.dataflow():
        a = R.multiply(x, x)
        b = R.sqrt(a)
        c = R.multiply(x, y)
        d = R.sqrt(c)
        e = R.add(b, d)
        R.output(e)
    return e
# EXPECT
from tenon.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4, 4), dtype="float32"), y: R.Tensor((4, 4), dtype="float32")):
        with R.dataflow():
            b: R.Tensor((4, 4), dtype="float32") = R.abs(x)
            c: R.Tensor((4, 4), dtype="float32") = R.multiply(x, y)
            d: R.Tensor((4, 4), dtype="float32") = R.sqrt(c)
            e: R.Tensor((4, 4), dtype="float32") = R.add(b, d)
            R.output(e)
        return e
