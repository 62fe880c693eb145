# ERROR: a compiled program needs its shape and element type
from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(ndim=2, dtype="float32")) -> R.Tensor(ndim=2, dtype="float32"):
        m = T.int64()
        n = T.int64()
        y = R.match_cast(x, R.Tensor((m, n), "float32"))
        z = R.add(y, y)
        return z
