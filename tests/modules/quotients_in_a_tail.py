# A sum of quotients whose last vector is half empty: lanes that do not run divided by 0.
from tvm.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((1, 7, 14), "int64")):
        with R.dataflow():
            divisor = R.reshape(R.arange(1, 99, 1, "int64"), (1, 7, 14))
            quotient = R.floor_divide(x, divisor)
            total = R.sum(quotient, axis=None, keepdims=False)
            rest = R.floor_mod(x, divisor)
            rests = R.sum(rest, axis=[1, 2], keepdims=False)
            R.output(total, rests)
        return (total, rests)
