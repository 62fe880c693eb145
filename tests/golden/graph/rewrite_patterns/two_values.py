@R.rewriter
class SumTwice:
    @R.function
    def pattern(x: R.Tensor, y: R.Tensor):
        z = R.add(x, y)
        return (z, z)

    @R.function
    def replacement(x: R.Tensor, y: R.Tensor):
        a = R.subtract(x, y)
        b = R.multiply(x, y)
        return (a, b)
