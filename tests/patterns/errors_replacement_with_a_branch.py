@R.rewriter
class Branches:
    @R.function
    def pattern(x: R.Tensor, c: R.Tensor((), "bool")):
        y = R.where(c, x, x)
        return y

    @R.function
    def replacement(x: R.Tensor, c: R.Tensor((), "bool")):
        if c:
            y = R.exp(x)
        else:
            y = R.abs(x)
        return y
# SEARCHED

# EXPECT
# 10:9 bad-pattern: `replacement` has control flow; expected calls only
