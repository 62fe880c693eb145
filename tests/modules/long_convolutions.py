from tvm.script import ir as I, relax as R, tirx as T


# Convolutions with sums of two thousand terms, which are computed in chunks of channels where a panel of
# filters leaves the cache: strides, operators that follow, channels that fill no block, and no window.
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((1, 232, 11, 12), "float32"), y: R.Tensor((1, 236, 9, 9), "float32"), z: R.Tensor((1, 2064, 5, 6), "float32")):
        with R.dataflow():
            many = R.multiply(R.sin(R.astype(R.arange(T.int64(0), T.int64(42480), T.int64(1), "int64"), dtype="float32")), R.const(0.02, "float32"))
            w = R.reshape(R.strided_slice(many, axes=[0], begin=[0], end=[33408]), R.shape([16, 232, 3, 3]))
            a = R.nn.conv2d(x, w, strides=[2, 2], padding=[1, 1, 1, 1])
            b = R.nn.relu(R.add(a, R.reshape(R.strided_slice(many, axes=[0], begin=[0], end=[16]), R.shape([1, 16, 1, 1]))))
            v = R.reshape(many, R.shape([20, 236, 3, 3]))
            c = R.nn.conv2d(y, v, padding=[2, 2, 2, 2], strides=[2, 2])
            d = R.add(c, R.nn.relu(c))
            u = R.reshape(R.strided_slice(many, axes=[0], begin=[0], end=[33024]), R.shape([16, 2064, 1, 1]))
            e = R.nn.conv2d(z, u)
            f = R.nn.relu(R.add(e, R.strided_slice(z, axes=[1], begin=[0], end=[16])))
            R.output(b, d, f)
        return (b, d, f)
