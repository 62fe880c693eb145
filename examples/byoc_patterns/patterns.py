# What two libraries take: `vision` convolutions, `dense` fully connected layers. Parameters of a
# pattern match any value.
from tenon.script import ir as I, relax as R


@I.ir_module
class Patterns:
    @R.function
    def conv_bias_relu(x: R.Tensor(ndim=4), w: R.Tensor(ndim=4), b: R.Tensor(ndim=1)):
        R.func_attr({"Composite": "vision.conv_bias_relu"})
        s = R.add(R.nn.conv2d(x, w, padding=(1, 1)), b)
        y = R.nn.relu(s)
        return y

    @R.function
    def dense_bias(x: R.Tensor(ndim=2), w: R.Tensor(ndim=2), b: R.Tensor(ndim=1)):
        R.func_attr({"Composite": "dense.dense_bias"})
        y = R.add(R.matmul(x, R.permute_dims(w)), b)
        return y
