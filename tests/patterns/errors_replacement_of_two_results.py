@R.rewriter
class Two:
    @R.function
    def pattern(x: R.Tensor((2,), "float32")):
        y = R.exp(x)
        return y

    @R.function
    def replacement(x: R.Tensor((2,), "float32")):
        y = R.exp(x)
        z = R.abs(x)
        return (y, z)
# SEARCHED

# EXPECT
# 9:9 bad-pattern: `replacement` returns R.Tuple(R.Tensor((2,), "float32"), R.Tensor((2,), "float32")) and `pattern` R.Tensor((2,), "float32"); expected one signature
