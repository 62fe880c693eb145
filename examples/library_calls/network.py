# A network of two dense layers whose composites belong to a library called `toy`.
from tenon.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function(private=True)
    def dense_relu(
        x: R.Tensor((64, 800), "float32"),
        weight: R.Tensor((500, 800), "float32"),
        bias: R.Tensor((500,), "float32"),
    ) -> R.Tensor((64, 500), "float32"):
        R.func_attr({"Composite": "toy.dense_bias_relu"})
        with R.dataflow():
            t = R.permute_dims(weight)
            product = R.matmul(x, t)
            sum = R.add(product, bias)
            y = R.nn.relu(sum)
            R.output(y)
        return y

    @R.function(private=True)
    def dense(
        x: R.Tensor((64, 500), "float32"),
        weight: R.Tensor((10, 500), "float32"),
        bias: R.Tensor((10,), "float32"),
    ) -> R.Tensor((64, 10), "float32"):
        R.func_attr({"Composite": "toy.dense_bias"})
        with R.dataflow():
            t = R.permute_dims(weight)
            product = R.matmul(x, t)
            y = R.add(product, bias)
            R.output(y)
        return y

    @R.function
    def main(
        x: R.Tensor((64, 800), "float32"),
        w0: R.Tensor((500, 800), "float32"),
        b0: R.Tensor((500,), "float32"),
        w1: R.Tensor((10, 500), "float32"),
        b1: R.Tensor((10,), "float32"),
    ) -> R.Tensor((64, 10), "float32"):
        with R.dataflow():
            hidden = Module.dense_relu(x, w0, b0)
            output = Module.dense(hidden, w1, b1)
            R.output(output)
        return output
