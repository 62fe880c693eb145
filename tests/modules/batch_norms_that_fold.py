# not TVM's
from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    # Half precision, and an axis 1 that is the height of a result of another layout.
    @R.function
    def main(x: R.Tensor((1, 2, 5, 5), "float16"), y: R.Tensor((1, 2, 5, 5), "float32")) -> R.Tuple(R.Tensor((1, 3, 3, 3), "float16"), R.Tensor((1, 3, 3, 3), "float32")):
        with R.dataflow():
            a = R.nn.conv2d(x, R.const_splat(0.5, R.Tensor((3, 2, 3, 3), "float16")))
            b = R.nn.batch_norm(a, R.const([1.0, 2.0, 3.0], "float16"), R.const([4.0, 5.0, 6.0], "float16"), R.const([0.5, 0.25, 0.125], "float16"), R.const([0.5, 0.25, 0.125], "float16"), training=False)
            c = R.nn.conv2d(y, R.const_splat(0.5, R.Tensor((3, 2, 3, 3), "float32")), out_layout="NHWC")
            d = R.nn.batch_norm(c, R.const([1.0, 2.0, 3.0], "float32"), R.const([4.0, 5.0, 6.0], "float32"), R.const([7.0, 8.0, 9.0], "float32"), R.const([0.5, 0.25, 0.125], "float32"), training=False)
            u = b[0]
            v = d[0]
            R.output(u, v)
        return (u, v)
