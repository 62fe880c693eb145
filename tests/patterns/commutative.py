# Operands of add, multiply, maximum and minimum match in either order, those of subtract do not.
e = is_op("relax.exp")(wildcard())
add = is_op("relax.add")(e, is_const())
multiply = is_op("relax.multiply")(e, is_const())
subtract = is_op("relax.subtract")(e, is_const())
nested = is_op("relax.add")(is_op("relax.add")(is_const(), wildcard()), e)
# SEARCHED
@R.function
def main(x: R.Tensor((4, 4), "float32"), y: R.Tensor((4, 4), "float32")):
    with R.dataflow():
        a = R.exp(x)
        b = R.add(R.const(1.0, "float32"), a)
        c = R.multiply(a, R.const(2.0, "float32"))
        d = R.subtract(R.const(2.0, "float32"), a)
        f = R.subtract(a, R.const(2.0, "float32"))
        g = R.add(a, b)
        g1 = R.add(g, c)
        h1 = R.add(d, f)
        h = R.add(g1, h1)
        R.output(h)
    return h
# EXPECT
# main e: a
# main add: b(e=a)
# main multiply: c(e=a)
# main subtract: f(e=a)
# main nested: g(e=a)
