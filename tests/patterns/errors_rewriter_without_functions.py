@R.rewriter
class Nothing:
    @R.function
    def pattern(x: R.Tensor):
        y = R.exp(x)
        return y
# SEARCHED

# EXPECT
# 2:7 bad-pattern: rewriter `Nothing` has no functions `pattern` and `replacement`
