# The module as it is spelt where this way of working was first discussed.


@tvm.script.ir_module
class MyMod:
    @R.func
    def conv_relu(x: R.Tensor((1, 10, 32, 32), "float32"),
                  w: R.Tensor((20, 10, 3, 3), "float32")):
        with dataflow():
            lv0 = op.conv2d(x, w, padding=(1, 1))
            gv0 = op.relu(lv0)
            R.output(gv0)
        return gv0

    @R.func
    def main(x: R.Tensor((1, 10, 32, 32), "float32"),
             w: R.Tensor((20, 10, 3, 3), "float32")):
        lv0: R.Tensor((1, 20, 32, 32), "float32") = conv_relu(x, w)
        return lv0
