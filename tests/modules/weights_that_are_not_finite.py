from tvm.script import ir as I, relax as R, tirx as T


# A zero of the padding times such a weight is NaN. Some weights are known, others only when it runs.
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((1, 16, 12, 12), "float32"), w: R.Tensor((16, 16, 3, 3), "float32")):
        with R.dataflow():
            given = R.where(R.greater(w, R.const(1.999, "float32")), R.const(float("inf"), "float32"), w)
            a = R.nn.conv2d(x, given, padding=[8, 8], dilation=[8, 8])
            b = R.nn.conv2d(x, w, padding=[8, 8], dilation=[8, 8])
            many = R.sin(R.astype(R.arange(T.int64(0), T.int64(2304), T.int64(1), "int64"), dtype="float32"))
            known = R.where(R.greater(many, R.const(0.9999, "float32")), R.const(float("-inf"), "float32"), many)
            c = R.nn.conv2d(x, R.reshape(known, R.shape([16, 16, 3, 3])), padding=[8, 8], dilation=[8, 8])
            d = R.nn.conv2d(x, R.reshape(many, R.shape([16, 16, 3, 3])), padding=[8, 8], dilation=[8, 8])
            R.output(a, b, c, d)
        return (a, b, c, d)
