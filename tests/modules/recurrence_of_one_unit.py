from tvm.script import ir as I, relax as R, tirx as T


# not TVM's
# The sum over the units before is of one term: it has no loop.
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((1, 3, 1), "float32"), w: R.Tensor((1, 3, 1), "float32"), r: R.Tensor((1, 3, 1), "float32"), lw: R.Tensor((1, 4, 1), "float32"), lr: R.Tensor((1, 4, 1), "float32")):
        with R.dataflow():
            a = R.nn.gru(x, w, r, hidden_size=1)
            b = R.nn.lstm(x, lw, lr, hidden_size=1)
            c = a[0]
            d = a[1]
            e = b[0]
            R.output(c, d, e)
        return (c, d, e)
