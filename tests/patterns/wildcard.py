# Anything, and the same where it repeats; two wildcards may be one value.
x = wildcard()
two = is_op("relax.add")(wildcard(), wildcard())
same = is_op("relax.add")(x, x)
# SEARCHED
@R.function
def main(x: R.Tensor((4, 4), "float32"), y: R.Tensor((4, 4), "float32")):
    with R.dataflow():
        a = R.add(x, y)
        b = R.add(x, x)
        c = R.multiply(x, x)
        d = R.add(a, R.const(1.0, "float32"))
        e = R.add(d, c)
        R.output(e)
    return e
# EXPECT
# main two: a; b; d; e
# main same: b(x=x)
