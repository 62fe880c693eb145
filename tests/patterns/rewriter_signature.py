@R.rewriter
class Differs:
    @R.function
    def pattern(x: R.Tensor, y: R.Tensor):
        z = R.add(x, y)
        return z

    @R.function
    def replacement(x: R.Tensor):
        z = R.exp(x)
        return z
# SEARCHED

# EXPECT
# 9:9 bad-pattern: `replacement` has 1 parameters and `pattern` 2; expected one signature
