# What oneDNN takes. An operator with weights comes with what may follow it; of two patterns the larger is tried first.

def plus(x, y):
    return is_op("relax.add")(x, y) | is_op("relax.add")(y, x)

def times(x, y):
    return is_op("relax.multiply")(x, y) | is_op("relax.multiply")(y, x)

def activated(x):
    unary = is_op("relax.nn.relu") | is_op("relax.nn.relu6") | is_op("relax.nn.leakyrelu") | is_op("relax.nn.elu") | is_op("relax.nn.gelu") | is_op("relax.nn.gelu_tanh") | is_op("relax.nn.silu") | is_op("relax.nn.swish") | is_op("relax.nn.hardswish") | is_op("relax.nn.hardsigmoid") | is_op("relax.sigmoid") | is_op("relax.tanh")
    return unary(x) | is_op("relax.clip")(x, varg_default_wildcard=True)

# The numbers of a GELU that is spelled out, which the back end asks for by these names.
half = is_const()
one = is_const()
erf_divisor = is_const()
erf_factor = is_const()
tanh_factor = is_const()
cube_factor = is_const()
exponent = is_const()

def halved(x, raised):
    return times(times(x, raised), half) | times(times(x, half), raised)

# x * (1 + erf(x / sqrt(2))) / 2
def gelu(x):
    scaled = is_op("relax.divide")(x, erf_divisor) | times(x, erf_factor)
    return halved(x, plus(is_op("relax.erf")(scaled), one))

# x * (1 + tanh(0.79788 * (x + 0.044715 * x ** 3))) / 2
def gelu_tanh(x):
    cubed = times(times(x, x), x) | is_op("relax.power")(x, exponent)
    scaled = times(plus(x, times(cubed, cube_factor)), tanh_factor)
    return halved(x, plus(is_op("relax.tanh")(scaled), one))

def transposed_or_not():
    return is_op("relax.permute_dims")(wildcard()) | wildcard()

_conv = (is_op("relax.nn.conv1d") | is_op("relax.nn.conv2d") | is_op("relax.nn.conv3d"))(wildcard(), wildcard())
_deconv = (is_op("relax.nn.conv1d_transpose") | is_op("relax.nn.conv2d_transpose") | is_op("relax.nn.conv3d_transpose"))(wildcard(), wildcard())
_matmul = is_op("relax.matmul")(transposed_or_not(), transposed_or_not())
_biased_matmul = plus(_matmul, is_const())
_plain_matmul = is_op("relax.matmul")(wildcard(), wildcard())
_pool = (is_op("relax.nn.max_pool1d") | is_op("relax.nn.max_pool2d") | is_op("relax.nn.max_pool3d") | is_op("relax.nn.avg_pool1d") | is_op("relax.nn.avg_pool2d") | is_op("relax.nn.avg_pool3d") | is_op("relax.nn.adaptive_avg_pool1d") | is_op("relax.nn.adaptive_avg_pool2d") | is_op("relax.nn.adaptive_avg_pool3d") | is_op("relax.mean"))(wildcard())
_batch_norm = is_op("relax.nn.batch_norm_result")(wildcard(), wildcard(), wildcard(), wildcard(), wildcard())
_binary = (is_op("relax.add") | is_op("relax.multiply") | is_op("relax.subtract") | is_op("relax.divide"))(wildcard(), wildcard())

patterns = [
    ("conv_bias_sum_activation", activated(plus(plus(_conv, is_const()), wildcard()))),
    ("conv_bias_activation_sum", plus(activated(plus(_conv, is_const())), wildcard())),
    ("conv_bias_activation", activated(plus(_conv, is_const()))),
    ("conv_bias_sum", plus(plus(_conv, is_const()), wildcard())),
    ("conv_sum_activation", activated(plus(_conv, wildcard()))),
    ("conv_activation", activated(_conv)),
    ("conv_bias", plus(_conv, is_const())),
    ("conv_sum", plus(_conv, wildcard())),
    ("conv", _conv),
    ("deconv_bias_activation", activated(plus(_deconv, is_const()))),
    ("deconv_activation", activated(_deconv)),
    ("deconv_bias", plus(_deconv, is_const())),
    ("deconv", _deconv),
    ("matmul_bias_gelu_tanh", gelu_tanh(_biased_matmul), {"gelu_source": _biased_matmul}),
    ("matmul_gelu_tanh", gelu_tanh(_matmul), {"gelu_source": _matmul}),
    ("matmul_bias_gelu", gelu(_biased_matmul), {"gelu_source": _biased_matmul}),
    ("matmul_gelu", gelu(_matmul), {"gelu_source": _matmul}),
    ("matmul_bias_sum_activation", activated(plus(plus(_matmul, is_const()), wildcard()))),
    ("matmul_bias_activation", activated(plus(_matmul, is_const()))),
    ("matmul_bias_sum", plus(plus(_matmul, is_const()), wildcard())),
    ("matmul_activation", activated(_matmul)),
    ("matmul_bias", plus(_matmul, is_const())),
    ("matmul_sum", plus(_matmul, wildcard())),
    ("matmul", _matmul),
    ("plain_matmul", _plain_matmul),
    ("pool", _pool),
    ("batch_norm_activation", activated(_batch_norm)),
    ("batch_norm", _batch_norm),
    ("layer_norm", is_op("relax.nn.layer_norm")(wildcard(), wildcard(), wildcard())),
    ("softmax", (is_op("relax.nn.softmax") | is_op("relax.nn.log_softmax"))(wildcard())),
    ("binary_activation", activated(_binary)),
    ("binary", _binary),
    ("activation", activated(wildcard())),
]
