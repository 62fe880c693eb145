# What the library can do: each function is a pattern, named after the library's function. `any` leaves attributes open, whatever they
# are; the library is told them.
from tenon.script import ir as I, relax as R


@I.ir_module
class Patterns:
    @R.function
    def conv2d(x: R.Tensor(ndim=4), weight: R.Tensor(ndim=4), bias: R.Tensor(ndim=1)):
        R.func_attr({"any": ["strides", "padding", "dilation", "groups"]})
        conv = R.nn.conv2d(x, weight)
        return R.add(conv, bias)

    @R.function
    def conv2d_relu(x: R.Tensor(ndim=4), weight: R.Tensor(ndim=4), bias: R.Tensor(ndim=1)):
        R.func_attr({"any": ["strides", "padding", "dilation", "groups"]})
        conv = R.nn.conv2d(x, weight)
        return R.nn.relu(R.add(conv, bias))

    @R.function
    def conv2d_clip(x: R.Tensor(ndim=4), weight: R.Tensor(ndim=4), bias: R.Tensor(ndim=1),
                    low: R.Prim("float32"), high: R.Prim("float32")):
        R.func_attr({"any": ["strides", "padding", "dilation", "groups"]})
        conv = R.nn.conv2d(x, weight)
        return R.clip(R.add(conv, bias), low, high)

    # A kernel for each channel: as many channels in as out, and each weight sees one.
    @R.function
    def depthwise2d(x: R.Tensor(("n", "c", "h", "w")), weight: R.Tensor(("c", 1, "kh", "kw")), bias: R.Tensor(ndim=1)):
        R.func_attr({"any": ["strides", "padding", "dilation", "groups"], "priority": 1})
        conv = R.nn.conv2d(x, weight)
        return R.add(conv, bias)

    @R.function
    def depthwise2d_clip(x: R.Tensor(("n", "c", "h", "w")), weight: R.Tensor(("c", 1, "kh", "kw")), bias: R.Tensor(ndim=1),
                         low: R.Prim("float32"), high: R.Prim("float32")):
        R.func_attr({"any": ["strides", "padding", "dilation", "groups"], "priority": 1})
        conv = R.nn.conv2d(x, weight)
        return R.clip(R.add(conv, bias), low, high)

    @R.function
    def max_pool2d(x: R.Tensor(ndim=4)):
        R.func_attr({"any": ["pool_size", "strides", "padding", "dilation", "ceil_mode"]})
        return R.nn.max_pool2d(x)

    @R.function
    def avg_pool2d(x: R.Tensor(ndim=4)):
        R.func_attr({"any": ["pool_size", "strides", "padding", "ceil_mode", "count_include_pad"]})
        return R.nn.avg_pool2d(x)

    @R.function
    def global_avg_pool(x: R.Tensor(ndim=4)):
        return R.mean(x, axis=[2, 3], keepdims=True)

    @R.function
    def dense(x: R.Tensor(ndim=2), weight: R.Tensor(ndim=2), bias: R.Tensor(ndim=1)):
        return R.add(R.matmul(x, R.permute_dims(weight)), bias)

    @R.function
    def add_relu(a: R.Tensor(("n", "c", "h", "w")), b: R.Tensor(("n", "c", "h", "w"))):
        return R.nn.relu(R.add(a, b))

    @R.function
    def add(a: R.Tensor(("n", "c", "h", "w")), b: R.Tensor(("n", "c", "h", "w"))):
        return R.add(a, b)

    @R.function
    def softmax(x: R.Tensor(ndim=2)):
        R.func_attr({"any": ["axis"]})
        return R.nn.softmax(x)
