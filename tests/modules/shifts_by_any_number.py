from tvm.script import ir as I, relax as R


# not TVM's: it has no numbers of 2 bits
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4, 6), "int8"), y: R.Tensor((4, 6), "int8")):
        with R.dataflow():
            a = R.astype(R.subtract(x, R.const(2, "int8")), dtype="int2")
            b = R.astype(R.subtract(y, R.const(2, "int8")), dtype="int2")
            c = R.astype(R.right_shift(a, b), dtype="int8")
            d = R.astype(R.left_shift(a, b), dtype="int8")
            e = R.astype(R.right_shift(R.astype(x, dtype="uint2"), R.astype(y, dtype="uint2")), dtype="uint8")
            f = R.right_shift(x, R.multiply(y, R.const(3, "int8")))
            R.output(c, d, e, f)
        return (c, d, e, f)
