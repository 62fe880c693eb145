from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        y = R.add(x, x)
        y = R.multiply(y, x)
        x = R.exp(y)
        y = R.subtract(x, y)
        return y
