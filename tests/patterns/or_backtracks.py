# The first alternative fits the sum alone; with what follows only the second one does.
x = wildcard()
y = wildcard()
sum = is_op("relax.add")(x, y) | is_op("relax.add")(y, x)
over = is_op("relax.divide")(sum, x)
# SEARCHED
@R.function
def main(x: R.Tensor((4, 4), "float32"), y: R.Tensor((4, 4), "float32")):
    with R.dataflow():
        a = R.add(x, y)
        b = R.divide(a, y)
        c = R.divide(a, x)
        d = R.divide(a, b)
        e = R.add(c, d)
        R.output(e)
    return e
# EXPECT
# main sum: a(x=x, y=y); e(x=c, y=d)
# main over: b(x=y, y=x, sum=a); c(x=x, y=y, sum=a)
