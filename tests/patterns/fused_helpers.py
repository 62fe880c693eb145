conv = make_fused_bias_activation_pattern("relax.nn.conv2d")
bias = make_fused_bias_activation_pattern("relax.nn.conv2d", with_bias=True)
relu = make_fused_bias_activation_pattern("relax.nn.conv2d", with_bias=True, activation="relax.nn.relu")
plain_relu = make_fused_bias_activation_pattern("relax.nn.conv2d", activation="relax.nn.relu")
# SEARCHED
@R.function
def main(x: R.Tensor((1, 2, 8, 8), "float32"), w: R.Tensor((2, 2, 3, 3), "float32"), b: R.Tensor((1, 2, 1, 1), "float32")):
    with R.dataflow():
        a = R.nn.conv2d(x, w)
        c = R.add(a, b)
        d = R.nn.relu(c)
        e = R.nn.conv2d(d, w)
        f = R.nn.relu(e)
        R.output(f)
    return f
# EXPECT
# main conv: a; e
# main bias: c
# main relu: d
# main plain_relu: f
