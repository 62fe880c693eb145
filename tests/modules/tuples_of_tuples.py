from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            t = ((x, y), x)
            a = t[0]
            b = a[1]
            c = t[1]
            d = R.subtract(b, c)
            R.output(d)
        return d
