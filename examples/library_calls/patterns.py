# What the library can do, as graph functions: each is a pattern, named after the library's function.
from tenon.script import ir as I, relax as R


@I.ir_module
class Patterns:
    @R.function
    def dense_bias_relu(x: R.Tensor, w: R.Tensor, b: R.Tensor(ndim=1)):
        product = R.matmul(x, R.permute_dims(w))
        return R.nn.relu(R.add(product, b))

    @R.function
    def dense_bias(x: R.Tensor, w: R.Tensor, b: R.Tensor(ndim=1)):
        return R.add(R.matmul(x, R.permute_dims(w)), b)
