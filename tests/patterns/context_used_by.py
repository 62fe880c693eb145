with PatternContext() as chain:
    e = is_op("relax.exp")(wildcard())
    r = is_op("relax.nn.relu")(wildcard())
    s = is_op("relax.add")(wildcard(), wildcard())
    e ^ r ^ s
with PatternContext() as no_chain:
    n = is_op("relax.negative")(wildcard())
    t = is_op("relax.tanh")(wildcard())
    n ^ t
with PatternContext() as by_index:
    p = is_op("relax.nn.relu")(wildcard())
    q = is_op("relax.add")(wildcard(), wildcard())
    p.used_by(q, 0)
with PatternContext() as wrong_index:
    u = is_op("relax.nn.relu")(wildcard())
    v = is_op("relax.add")(wildcard(), wildcard())
    u.used_by(v, 1)
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
# main s: d
# main n: c
# main t: e
# main p: b
# main q: d
# main u: b
# main v: d
# main chain in block 0: e=a r=b s=d
# main no_chain in block 0: nothing
# main by_index in block 0: p=b q=d
# main wrong_index in block 0: nothing
