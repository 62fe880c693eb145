half = is_op("relax.exp")(wildcard()).has_dtype("float16")
single = is_op("relax.exp")(wildcard().has_dtype("float32"))
cast = is_op("relax.astype")(wildcard().has_dtype("float32")).has_dtype("float16")
# SEARCHED
@R.function
def main(x: R.Tensor((4, 4), "float32"), y: R.Tensor((4, 4), "float32")):
    with R.dataflow():
        a = R.exp(x)
        b = R.astype(a, "float16")
        c = R.exp(b)
        d = R.astype(c, "float32")
        R.output(d)
    return d
# EXPECT
# main half: c
# main single: a
# main cast: b
