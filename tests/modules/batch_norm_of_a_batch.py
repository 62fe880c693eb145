from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 3, 4), "float32"), g: R.Tensor((3,), "float32"), b: R.Tensor((3,), "float32"), m: R.Tensor((3,), "float32"), v: R.Tensor((3,), "float32")) -> R.Tuple(R.Tensor((2, 3, 4), "float32"), R.Tensor((3,), "float32"), R.Tensor((3,), "float32")):
        y = R.nn.batch_norm(x, g, b, m, v, axis=1)
        return y
