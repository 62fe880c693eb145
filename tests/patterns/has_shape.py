square = is_op("relax.exp")(wildcard().has_shape(("k", "k")))
row = is_op("relax.exp")(wildcard()).has_shape((1, 4))
symbolic = is_op("relax.matmul")(wildcard().has_shape(("m", "k")), wildcard().has_shape(("k", "m")))
double = is_op("relax.concat")(is_tuple([wildcard().has_shape(("m", "k")), wildcard()])).has_shape(("m * 2", "k"))
# SEARCHED
@R.function
def main(x: R.Tensor((4, 4), "float32"), y: R.Tensor((1, 4), "float32"), z: R.Tensor(("n", 4), "float32")):
    with R.dataflow():
        a = R.exp(x)
        b = R.exp(y)
        c = R.matmul(x, a)
        d = R.matmul(b, c)
        e = R.concat((x, x))
        f = R.concat((d, e))
        g = R.exp(z)
        R.output(f)
    return f
# EXPECT
# main square: a
# main row: b
# main symbolic: c
# main double: e
