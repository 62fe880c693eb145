relu = is_op("relax.nn.relu")(wildcard())
exp = is_op("relax.exp")(wildcard())
either = relu | exp
many = any_of(is_op("relax.tanh")(wildcard()), relu, exp)
both = relu & wildcard().has_shape((4, 4))
neither = relu & wildcard().has_shape((4, 5))
not_of_relu = is_op("relax.negative")(~relu)
rejected = is_op("relax.negative")(reject(exp))
with_either = is_op("relax.negative")(relu | exp)
# SEARCHED
@R.function
def main(x: R.Tensor((4, 4), "float32"), y: R.Tensor((4, 4), "float32")):
    with R.dataflow():
        a = R.nn.relu(x)
        b = R.exp(a)
        c = R.tanh(b)
        d = R.negative(a)
        e = R.negative(b)
        f = R.negative(c)
        g = R.add(d, e)
        h = R.add(f, g)
        R.output(h)
    return h
# EXPECT
# main relu: a
# main exp: b
# main either: a(relu=a); b(exp=b)
# main many: a(relu=a); b(exp=b); c
# main both: a(relu=a)
# main neither: nothing
# main not_of_relu: e; f
# main rejected: d; f
# main with_either: d(relu=a); e(exp=b)
