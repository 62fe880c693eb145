# All arguments, the first of them, or whatever they are.
full = is_op("relax.nn.conv2d")(wildcard(), wildcard())
first = is_op("relax.nn.conv2d")(is_var("x"), varg_default_wildcard=True)
too_few = is_op("relax.nn.conv2d")(wildcard())
second = is_op("relax.concat")(is_tuple([wildcard(), is_const()]))
# SEARCHED
@R.function
def main(x: R.Tensor((1, 2, 8, 8), "float32"), w: R.Tensor((2, 2, 3, 3), "float32")):
    with R.dataflow():
        a = R.nn.conv2d(x, w)
        b = R.nn.conv2d(a, w)
        c = R.concat((b, b))
        d = R.nn.relu(c)
        R.output(d)
    return d
# EXPECT
# main full: a; b
# main first: a
# main too_few: nothing
# main second: nothing
