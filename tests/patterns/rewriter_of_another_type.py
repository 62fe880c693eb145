@R.rewriter
class Wider:
    @R.function
    def pattern(x: R.Tensor):
        y = R.exp(x)
        return y

    @R.function
    def replacement(x: R.Tensor):
        y = R.astype(x, dtype="int32")
        return y
# SEARCHED
@R.function
def main(x: R.Tensor((2,), "float32")):
    y = R.exp(x)
    return y
# EXPECT
# 10:13 type-mismatch: a replacement is R.Tensor((2,), "int32") and stands for `y`, which is R.Tensor((2,), "float32")
