# A match_cast defines a dimension that a result has.
from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("m", 4), "float32")):
        m = T.int64()
        n = T.int64()
        k = T.int64()
        y = R.match_cast(R.concat((x, x), axis=0), R.Tensor((n, 4), "float32"))
        z = R.match_cast(R.add(y, y), R.Tensor((k, 4), "float32"))
        return (y, R.exp(z))
