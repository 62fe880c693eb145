# Of any name, of one; of a dataflow block; a function of the module.
any_var = is_op("relax.exp")(is_var())
named = is_op("relax.exp")(is_var("x"))
other = is_op("relax.exp")(is_var("zz"))
inside = is_op("relax.exp")(is_dfv())
inside_named = is_op("relax.exp")(is_dfv("a"))
constant = is_op("relax.exp")(is_const())
# SEARCHED
@R.function
def main(x: R.Tensor((4, 4), "float32"), y: R.Tensor((4, 4), "float32")):
    with R.dataflow():
        a = R.exp(x)
        b = R.exp(a)
        c = R.exp(R.const(1.0, "float32"))
        d = R.add(b, c)
        R.output(d)
    return d
# EXPECT
# main any_var: a; b
# main named: a
# main other: nothing
# main inside: b
# main inside_named: b
# main constant: c
