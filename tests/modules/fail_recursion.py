# ERROR: graph function `f` calls itself
from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @R.function
    def f(n: R.Tensor((), "int32"), x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        c = R.equal(n, R.const(0, "int32"))
        if c:
            y = x
        else:
            m = R.subtract(n, R.const(1, "int32"))
            z = R.add(x, x)
            y = cls.f(m, z)
        return y

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        y = cls.f(R.const(3, "int32"), x)
        return y
