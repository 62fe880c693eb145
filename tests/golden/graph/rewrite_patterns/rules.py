@R.rewriter
class AbsOfSquareRoot:
    @R.function
    def pattern(x: R.Tensor):
        z = R.sqrt(R.multiply(x, x))
        return z

    @R.function
    def replacement(x: R.Tensor):
        z = R.abs(x)
        return z


@R.rewriter
class ReluOfRelu:
    @R.function
    def pattern(x: R.Tensor):
        z = R.nn.relu(R.nn.relu(x))
        return z

    @R.function
    def replacement(x: R.Tensor):
        z = R.nn.relu(x)
        return z
