@R.rewriter
class Endless:
    @R.function
    def pattern(x: R.Tensor):
        z = R.exp(x)
        return z

    @R.function
    def replacement(x: R.Tensor):
        z = R.exp(R.negative(x))
        return z
