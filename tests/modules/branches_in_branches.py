from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @R.function
    def main(c: R.Tensor((), "bool"), d: R.Tensor((), "bool"), x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        if c:
            a = R.add(x, x)
            if d:
                b = R.exp(a)
            else:
                b = R.tanh(a)
            y = R.negative(b)
        else:
            y = R.multiply(x, x)
        z = R.add(y, x)
        return z
