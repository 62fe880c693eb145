# Patterns may be made by functions of Python.
def dense(with_bias, activation=None):
    x = wildcard()
    out = is_op("relax.matmul")(x, is_const())
    if with_bias:
        out = is_op("relax.add")(out, wildcard())
    if activation:
        return is_op(activation)(out)
    return out


plain = dense(False)
biased = dense(with_bias=True)
relu = dense(True, "relax.nn.relu")
names = ["relax.exp", "relax.tanh"]
others = [is_op(names[0])(wildcard()), is_op(names[1])(wildcard())]
last = others[-1]
# SEARCHED
@R.function
def main(x: R.Tensor((4, 2), "float32"), b: R.Tensor((2,), "float32")):
    with R.dataflow():
        a = R.matmul(x, R.const([[1.0, 2.0], [3.0, 4.0]], "float32"))
        c = R.add(a, b)
        d = R.nn.relu(c)
        e = R.tanh(d)
        R.output(e)
    return e
# EXPECT
# main plain: a
# main biased: c
# main relu: d
# main last: e
