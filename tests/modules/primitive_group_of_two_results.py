from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @R.function(private=True)
    def fused(x: R.Tensor((4,), "float32")) -> R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32")):
        R.func_attr({"Primitive": True})
        with R.dataflow():
            a = R.exp(x)
            b = R.negative(a)
            c = (a, b)
            R.output(c)
        return c

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        with R.dataflow():
            z = cls.fused(x)
            p = z[0]
            q = z[1]
            w = R.multiply(p, q)
            R.output(w)
        return w
