from tvm.script import ir as I, relax as R, tirx as T


# Channels of groups are axes of their own; positions are left over behind whole vectors, and symbolic.
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((1, 12, "n"), "float32"), y: R.Tensor((2, 12, 21), "float32"), w: R.Tensor((12, 4, 5), "float32"), b: R.Tensor((12, 1), "float32")) -> R.Tuple(R.Tensor((1, 12, "n"), "float32"), R.Tensor((1, 12, "n"), "float32"), R.Tensor((2, 12, 21), "float32")):
        n = T.int64()
        with R.dataflow():
            a = R.nn.conv1d(x, w, padding=[2, 2], groups=3)
            c = R.nn.conv1d(x, w, padding=[2, 2], groups=3)
            d = R.nn.relu(R.add(c, b))
            e = R.nn.conv1d(y, w, padding=[2, 2], groups=3)
            f = R.add(e, b)
            R.output(a, d, f)
        return (a, d, f)
