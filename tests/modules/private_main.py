from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    # not TVM's: it would not be found there
    @R.function(private=True)
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        y = R.exp(x)
        return y
