# GCC 12's vectoriser of straight code made all ones of `true` in C.
from tvm.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((7, 7), "bool"), y: R.Tensor((7, 7), "bool")):
        with R.dataflow():
            either = R.logical_or(x, y)
            number = R.astype(either, "uint32")
            R.output(number)
        return number
