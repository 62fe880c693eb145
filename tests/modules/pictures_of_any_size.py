from tvm.script import ir as I, relax as R, tirx as T


# What stands behind poolings and strides of symbolic sizes: dimensions are quotients of the inputs', 1x1 and
# strided convolutions, blocks of channels scaled by a vector for each picture.
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("b", 16, "h", "w"), "float32")):
        b = T.int64()
        h = T.int64()
        w = T.int64()
        with R.dataflow():
            numbers = R.astype(R.arange(T.int64(0), T.int64(4608), T.int64(1), "int64"), dtype="float32")
            many = R.sin(numbers)
            p = R.nn.max_pool2d(x, pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1])
            point = R.reshape(R.strided_slice(many, axes=[0], begin=[0], end=[512]), R.shape([32, 16, 1, 1]))
            a = R.nn.relu(R.nn.conv2d(p, point))
            wide = R.reshape(R.strided_slice(many, axes=[0], begin=[0], end=[4608]), R.shape([16, 32, 3, 3]))
            c = R.nn.conv2d(a, wide, padding=[1, 1, 1, 1], strides=[2, 2])
            s = R.sigmoid(R.mean(a, axis=[2, 3], keepdims=True))
            d = R.multiply(s, a)
            last = R.reshape(R.strided_slice(many, axes=[0], begin=[0], end=[640]), R.shape([20, 32, 1, 1]))
            e = R.nn.conv2d(d, last)
            R.output(c, e)
        return (c, e)
