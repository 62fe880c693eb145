# A convolution and its activation as a function of their own, called by main.
from tenon.script import ir as I, relax as R, tir as T


@I.ir_module
class MyMod:
    @R.function
    def conv_relu(
        x: R.Tensor((1, 10, 32, 32), "float32"), w: R.Tensor((20, 10, 3, 3), "float32")
    ) -> R.Tensor((1, 20, 32, 32), "float32"):
        with R.dataflow():
            lv0 = R.nn.conv2d(x, w, padding=(1, 1))
            gv0 = R.nn.relu(lv0)
            R.output(gv0)
        return gv0

    @R.function
    def main(x: R.Tensor((1, 10, 32, 32), "float32")) -> R.Tensor((1, 20, 32, 32), "float32"):
        with R.dataflow():
            w0 = R.reshape(R.sin(R.arange(R.prim_value(T.float32(0)), R.prim_value(T.float32(1800)), R.prim_value(T.float32(1)), dtype="float32")), R.shape([20, 10, 3, 3]))
            lv0 = MyMod.conv_relu(x, w0)
            R.output(lv0)
        return lv0
