from tvm.script import ir as I, relax as R, tirx as T


# Blocks of channels along one and three axes: symbolic lengths, operators that follow, also such as
# make of 0 what is not finite where channels do and do not fill blocks, and groups that are blocks.
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((1, 8, "n"), "float32"), y: R.Tensor((1, 8, 3, 4, 5), "float32")):
        n = T.int64()
        with R.dataflow():
            numbers = R.astype(R.arange(T.int64(0), T.int64(3456), T.int64(1), "int64"), dtype="float32")
            many = R.sin(numbers)
            w = R.reshape(R.strided_slice(many, axes=[0], begin=[0], end=[768]), R.shape([32, 8, 3]))
            a = R.nn.conv1d(x, w, padding=[1, 1])
            b = R.divide(a, R.const(1.5, "float32"))
            c = R.multiply(R.add(R.erf(b), R.const(1.0, "float32")), a)
            d = R.nn.conv1d(c, R.reshape(R.strided_slice(many, axes=[0], begin=[0], end=[3072]), R.shape([32, 32, 3])), padding=[2, 1], strides=[2])
            e = R.nn.conv1d(c, R.reshape(R.strided_slice(many, axes=[0], begin=[0], end=[640]), R.shape([20, 32, 1])))
            # Sums that do not cancel, so that their reciprocals are as exact as they are.
            u = R.nn.conv1d(R.multiply(c, c), R.abs(R.reshape(R.strided_slice(many, axes=[0], begin=[0], end=[640]), R.shape([20, 32, 1]))))
            f = R.divide(R.const(1000.0, "float32"), u)
            g = R.nn.conv1d(R.multiply(R.strided_slice(e, axes=[1], begin=[0], end=[20]), R.const(0.125, "float32")), R.reshape(R.strided_slice(many, axes=[0], begin=[0], end=[1000]), R.shape([20, 10, 5])), padding=[2, 2], groups=2)
            v = R.reshape(many, R.shape([16, 8, 3, 3, 3]))
            h = R.nn.conv3d(y, v, padding=[1, 1, 1, 1, 1, 1])
            i = R.nn.relu(R.add(h, R.reshape(R.strided_slice(many, axes=[0], begin=[0], end=[16]), R.shape([1, 16, 1, 1, 1]))))
            j = R.nn.conv3d(i, R.reshape(R.strided_slice(many, axes=[0], begin=[0], end=[512]), R.shape([32, 16, 1, 1, 1])), strides=[2, 2, 2])
            k = R.mean(i, axis=[2, 3, 4], keepdims=True)
            l = R.nn.max_pool3d(i, pool_size=[2, 2, 2])
            m = R.exp(R.permute_dims(R.exp(R.multiply(c, R.const(0.125, "float32"))), axes=[0, 2, 1]))
            R.output(c, d, f, g, i, j, k, l, m)
        return (c, d, f, g, i, j, k, l, m)
