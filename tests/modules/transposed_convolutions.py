from tvm.script import ir as I, relax as R, tirx as T


# Of constant weights, whose phases are filters of one convolution: taps that divide by the stride and
# that do not, padding, elements behind the last one, symbolic sizes; and where data does not reach.
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 8, "h", 5), "float32"), y: R.Tensor((1, 8, 4, 5), "float32")):
        n = T.int64()
        h = T.int64()
        with R.dataflow():
            many = R.astype(R.reshape(R.arange(T.int64(0), T.int64(2400), T.int64(1), "int64"), R.shape([8, 12, 5, 5])), dtype="float32")
            w5 = R.sin(many)
            w4 = R.strided_slice(w5, axes=[2, 3], begin=[0, 0], end=[4, 4])
            w2 = R.strided_slice(w5, axes=[2, 3], begin=[0, 0], end=[2, 2])
            w3 = R.strided_slice(w5, axes=[2, 3], begin=[0, 0], end=[3, 2])
            a = R.nn.conv2d_transpose(x, w2, strides=[2, 2])
            b = R.nn.relu(R.nn.conv2d_transpose(x, w4, strides=[2, 2], padding=[1, 1, 1, 1]))
            c = R.nn.conv2d_transpose(y, w3, strides=[2, 1], padding=[1, 0, 0, 1], output_padding=[1, 0])
            d = R.nn.conv2d_transpose(y, w5, strides=[3, 2], padding=[2, 1, 1, 2], output_padding=[2, 1])
            e = R.nn.conv2d_transpose(y, w2, strides=[3, 3], output_padding=[1, 2])
            f = R.nn.conv2d(a, R.strided_slice(R.sin(R.reshape(many, R.shape([20, 12, 10, 1]))), axes=[2], begin=[3], end=[4]))
            R.output(a, b, c, d, e, f)
        return (a, b, c, d, e, f)
