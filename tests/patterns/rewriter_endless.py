# A replacement that contains its own pattern.
@R.rewriter
class Grows:
    @R.function
    def pattern(x: R.Tensor):
        y = R.exp(x)
        return y

    @R.function
    def replacement(x: R.Tensor):
        y = R.exp(R.exp(x))
        return y
# SEARCHED
@R.function
def main(x: R.Tensor((4, 4), "float32"), y: R.Tensor((4, 4), "float32")):
    with R.dataflow():
        a = R.exp(x)
        R.output(a)
    return a
# EXPECT
# 2:5 endless-rewrite: rewriting a function makes it ever larger; does the replacement contain its own pattern?
