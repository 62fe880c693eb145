# The same object binds one value; its dup another.
e = is_op("relax.exp")(wildcard())
f = e.dup()
one = is_op("relax.subtract")(e, e)
two = is_op("relax.subtract")(e, f)
# SEARCHED
@R.function
def main(x: R.Tensor((4, 4), "float32"), y: R.Tensor((4, 4), "float32")):
    with R.dataflow():
        a = R.exp(x)
        b = R.exp(y)
        c = R.subtract(a, a)
        d = R.subtract(a, b)
        g = R.add(c, d)
        R.output(g)
    return g
# EXPECT
# main e: a; b
# main f: a; b
# main one: c(e=a)
# main two: c(e=a, f=a); d(e=a, f=b)
