one = is_op("relax.add")(wildcard(), is_expr(R.const(1.0, "float32")))
some = is_op("relax.add")(wildcard(), is_const())
shape = is_op("relax.reshape")(wildcard(), is_shape((2, 8)))
any_shape = is_op("relax.reshape")(wildcard(), is_shape(("n", "n")))
# SEARCHED
@R.function
def main(x: R.Tensor((4, 4), "float32"), y: R.Tensor((4, 4), "float32")):
    with R.dataflow():
        a = R.add(x, R.const(1.0, "float32"))
        b = R.add(R.const(2.0, "float32"), a)
        c = R.add(b, y)
        d = R.reshape(c, (2, 8))
        e = R.reshape(d, (4, 4))
        R.output(e)
    return e
# EXPECT
# main one: a
# main some: a; b
# main shape: d
# main any_shape: e
