relu = is_op("relax.nn.relu")(wildcard())
short = is_op("nn.relu")(wildcard())
either = (is_op("relax.exp") | is_op("relax.nn.relu"))(wildcard())
elementwise = is_op("relax.exp").has_attr({"TOpPattern": 0})(wildcard())
contraction = is_op("relax.exp").has_attr({"TOpPattern": 4})(wildcard())
# SEARCHED
@R.function
def main(x: R.Tensor((4, 4), "float32"), y: R.Tensor((4, 4), "float32")):
    with R.dataflow():
        a = R.nn.relu(x)
        b = R.exp(a)
        c = R.negative(b)
        R.output(c)
    return c
# EXPECT
# main relu: a
# main short: a
# main either: a; b
# main elementwise: b
# main contraction: nothing
