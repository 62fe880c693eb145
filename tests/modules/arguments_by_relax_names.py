from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 4), "float32"), y: R.Tensor((2, 4), "float32")) -> R.Tensor((2, 4), "float32"):
        with R.dataflow():
            a = R.add(x1=x, x2=y)
            b = R.nn.relu(data=a)
            c = R.flip(data=b, axis=1)
            d = R.maximum(x1=c, x2=y)
            R.output(d)
        return d
