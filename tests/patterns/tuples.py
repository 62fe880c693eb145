# In order, in any order, an item of any index.
e = is_op("relax.exp")(wildcard())
n = is_op("relax.negative")(wildcard())
ordered = is_op("relax.concat")(is_tuple([e, n]))
unordered = is_op("relax.concat")(is_tuple([e, n], unordered=True))
three = is_op("relax.concat")(is_tuple([e, n, wildcard()], unordered=True))
split = is_op("relax.split")(wildcard())
first = is_op("relax.nn.relu")(is_tuple_get_item(split, 0))
some = is_op("relax.nn.relu")(is_tuple_get_item(split))
indexed = is_op("relax.nn.relu")(split[1])
# SEARCHED
@R.function
def main(x: R.Tensor((4, 4), "float32"), y: R.Tensor((4, 4), "float32")):
    with R.dataflow():
        a = R.exp(x)
        b = R.negative(y)
        c = R.concat((a, b))
        d = R.concat((b, a))
        f = R.concat((b, x, a))
        s = R.split(c, 2, axis=0)
        s0 = s[0]
        s1 = s[1]
        r0 = R.nn.relu(s0)
        r1 = R.nn.relu(s1)
        t = R.concat((r0, r1, d, f))
        R.output(t)
    return t
# EXPECT
# main e: a
# main n: b
# main ordered: c(e=a, n=b)
# main unordered: c(e=a, n=b); d(e=a, n=b)
# main three: f(e=a, n=b)
# main split: s
# main first: r0(split=s)
# main some: r0(split=s); r1(split=s)
# main indexed: r1(split=s)
