with PatternContext() as fork:
    e = is_op("relax.exp")(wildcard())
    r = is_op("relax.nn.relu")(wildcard())
    n = is_op("relax.negative")(wildcard())
    s = is_op("relax.add")(wildcard(), wildcard())
    e.fork_to(r, n)
    r >> s
    n >> s
with PatternContext() as no_fork:
    t = is_op("relax.tanh")(wildcard())
    a = wildcard()
    b = wildcard()
    t.fork_to(a, b)
with PatternContext() as parameter:
    p = is_var("x")
    use = wildcard()
    p ^ use
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
# main s: d
# main t: e
# main fork in block 0: e=a r=b n=c s=d
# main no_fork in block 0: nothing
# main parameter in block 0: p=x use=a
