from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((3, 16), "float32"), w: R.Tensor((16, 8), "float32"), b: R.Tensor((8,), "float32"), g: R.Tensor((8,), "float32")) -> R.Tensor((3, 8), "float32"):
        with R.dataflow():
            a = R.matmul(x, w)
            c = R.add(a, b)
            d = R.nn.gelu(c)
            e = R.nn.layer_norm(d, g, b, axes=[-1], epsilon=1e-5)
            f = R.nn.softmax(e, axis=-1)
            R.output(f)
        return f
