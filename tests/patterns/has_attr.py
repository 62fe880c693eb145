same = is_op("relax.nn.conv2d")(wildcard(), wildcard()).has_attr({"padding": [1, 1]})
four = is_op("relax.nn.conv2d")(wildcard(), wildcard()).has_attr({"padding": [1, 1, 1, 1]})
strided = is_op("relax.nn.conv2d")(wildcard(), wildcard()).has_attr({"strides": [2, 2], "groups": 1})
unknown = is_op("relax.nn.conv2d")(wildcard(), wildcard()).has_attr({"colour": 1})
layout = is_op("relax.nn.conv2d")(wildcard(), wildcard()).has_attr({"data_layout": "NCHW"})
# SEARCHED
@R.function
def main(x: R.Tensor((1, 2, 8, 8), "float32"), w: R.Tensor((2, 2, 3, 3), "float32")):
    with R.dataflow():
        a = R.nn.conv2d(x, w)
        b = R.nn.conv2d(a, w, padding=(1, 1))
        c = R.nn.conv2d(b, w, strides=2, padding=1)
        R.output(c)
    return c
# EXPECT
# main same: b; c
# main four: b; c
# main strided: c
# main unknown: nothing
# main layout: a; b; c
