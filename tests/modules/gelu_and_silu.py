from tvm.script import ir as I, relax as R, tirx as T


# Rows of 37 end in vectors of every width, and in single elements.
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((3, 37), "float32")):
        with R.dataflow():
            a = R.nn.gelu(x)
            b = R.nn.gelu_tanh(x)
            c = R.nn.silu(x)
            d = R.exp(R.multiply(x, R.const(30.0, "float32")))
            e = R.tanh(x)
            R.output(a, b, c, d, e)
        return (a, b, c, d, e)
