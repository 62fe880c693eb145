from tvm.script import ir as I, relax as R, tirx as T


# Products of two activations whose last columns fill no vector: one, three, five and fifteen of them, with a rest of the
# reduction, in a batch, of many rows, which are tasks, and with the second factor read across its rows.
@I.ir_module
class Module:
    @R.function
    def main(
        a: R.Tensor((2, 33, 44), "float32"),
        b: R.Tensor((2, 44, 33), "float32"),
        c: R.Tensor((2496, 64), "float32"),
        d: R.Tensor((64, 19), "float32"),
        e: R.Tensor((2, 37, 44), "float32"),
        f: R.Tensor((40, 70), "float32"),
        g: R.Tensor((70, 31), "float32"),
        h: R.Tensor((31,), "float32"),
    ):
        with R.dataflow():
            one = R.matmul(a, b)
            three = R.matmul(c, d)
            five = R.nn.softmax(R.matmul(a, R.permute_dims(e, axes=[0, 2, 1])), axis=-1)
            fifteen = R.nn.relu(R.add(R.matmul(f, g), h))
            R.output(one, three, five, fifteen)
        return (one, three, five, fifteen)
