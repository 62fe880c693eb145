# Axes count from the front or from the end; where an operator adds dimensions, they are those of its result.
mean = is_op("relax.mean")(wildcard()).has_attr({"axis": [-1], "keepdims": True})
softmax = is_op("relax.nn.softmax")(wildcard()).has_attr({"axis": 1})
transpose = is_op("relax.permute_dims")(wildcard()).has_attr({"axes": [1, -2]})
expand = is_op("relax.expand_dims")(wildcard()).has_attr({"axis": [1]})
# SEARCHED
@R.function
def main(x: R.Tensor((4, 5), "float32")):
    with R.dataflow():
        a = R.mean(x, axis=[1], keepdims=True)
        b = R.mean(x, axis=[0], keepdims=True)
        c = R.nn.softmax(x, axis=-1)
        d = R.nn.softmax(x, axis=-2)
        e = R.permute_dims(x)
        f = R.expand_dims(x, axis=[-1])
        g = R.expand_dims(x, axis=[1])
        R.output(a, b, c, d, e, f, g)
    return (a, b, c, d, e, f, g)
# EXPECT
# main mean: a
# main softmax: c
# main transpose: e
# main expand: g
