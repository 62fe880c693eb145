with PatternContext() as same:
    a = is_op("relax.add")(wildcard(), wildcard())
    e = is_op("relax.exp")(wildcard())
    e.same_shape_as(a)
with PatternContext() as different:
    b = is_op("relax.add")(wildcard(), wildcard())
    s = is_op("relax.sum")(wildcard())
    s.same_shape_as(b)
# SEARCHED
@R.function
def main(x: R.Tensor((4, 4), "float32"), y: R.Tensor((4, 4), "float32")):
    with R.dataflow():
        u = R.exp(x)
        v = R.sum(u)
        z = R.add(u, v)
        R.output(z)
    return z
# EXPECT
# main a: z
# main e: u
# main b: z
# main s: v
# main same in block 0: a=z e=u
# main different in block 0: nothing
