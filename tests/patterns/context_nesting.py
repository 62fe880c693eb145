with PatternContext() as outer:
    e = is_op("relax.exp")(wildcard())
    r = is_op("relax.nn.relu")(wildcard())
    e ^ r
    with PatternContext(incremental=True) as inner:
        n = is_op("relax.negative")(wildcard())
        e ^ n
    with PatternContext(incremental=True) as unmatched:
        t = is_op("relax.tanh")(wildcard())
        e ^ t
    with PatternContext() as alone:
        q = is_op("relax.sqrt")(wildcard())
        w = is_op("relax.tanh")(wildcard())
        w ^ q
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
# main e: a
# main r: b
# main n: c
# main t: e
# main q: f
# main w: e
# main inner in block 0: e=a r=b n=c
# main unmatched in block 0: nothing
# main alone in block 0: q=f w=e
# main outer in block 0: e=a r=b
