with PatternContext() as only:
    d = is_op("relax.add")(wildcard(), wildcard())
    t = is_op("relax.tanh")(wildcard())
    q = is_op("relax.sqrt")(wildcard())
    d >> t >> q
with PatternContext() as shared:
    e = is_op("relax.exp")(wildcard())
    r = is_op("relax.nn.relu")(wildcard())
    e >> r
with PatternContext() as escapes:
    last = is_op("relax.sqrt")(wildcard())
    none = wildcard()
    last >> none
# SEARCHED
@R.function
def main(x: R.Tensor((4, 4), "float32"), y: R.Tensor((4, 4), "float32")):
    with R.dataflow():
        a = R.exp(x)
        b = R.nn.relu(a)
        c = R.negative(a)
        d = R.add(b, c)
        e = R.tanh(d)
        f = R.sqrt(e)
        R.output(f)
    return f
# EXPECT
# main d: d
# main t: e
# main q: f
# main e: a
# main r: b
# main last: f
# main only in block 0: d=d t=e q=f
# main shared in block 0: nothing
# main escapes in block 0: nothing
