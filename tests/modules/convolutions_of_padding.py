from tvm.script import ir as I, relax as R, tirx as T


# Taps that meet padding only, at either end of an axis, and some that do not.
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 8, 5, 6), "float32"), y: R.Tensor((1, 8, 1, 6, 7), "float32")):
        with R.dataflow():
            many = R.sin(R.astype(R.arange(T.int64(0), T.int64(3456), T.int64(1), "int64"), dtype="float32"))
            w = R.reshape(R.strided_slice(many, axes=[0], begin=[0], end=[1152]), R.shape([16, 8, 3, 3]))
            a = R.nn.conv2d(x, w, padding=[6, 6], dilation=[6, 6])
            b = R.nn.conv2d(x, w, padding=[4, 4], dilation=[4, 4])
            c = R.nn.conv2d(x, w, padding=[5, 0, 0, 3], dilation=[4, 3], strides=[2, 1])
            d = R.nn.conv3d(y, R.reshape(many, R.shape([16, 8, 3, 3, 3])), padding=[1, 1, 1])
            e = R.nn.conv3d(y, R.reshape(many, R.shape([16, 8, 3, 3, 3])), padding=[2, 0, 0, 0, 1, 1])
            R.output(a, b, c, d, e)
        return (a, b, c, d, e)
