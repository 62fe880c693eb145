# Exact beyond what a float64 holds, modulo 2 to the bits of the type.
# not TVM's: its integer powers are floats
from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((6,), "int64"), b: R.Tensor((6,), "int8"), n: R.Tensor((6,), "uint64")):
        large = R.power(R.add(x, R.const(1000003, "int64")), R.const([3, 0, 1, 100, -1, 63], "int64"))
        small = R.power(b, R.const([7, 0, -1, -2, 120, 5], "int8"))
        units = R.power(R.const([-1, 1, 0, -1, 1, 2], "int64"), x)
        whole = R.power(n, R.const([18446744073709551615, 0, 2, 41, 64, 3], "uint64"))
        return (large, small, units, whole)
