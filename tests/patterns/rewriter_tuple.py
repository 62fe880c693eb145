# Three products of one value become one.
@R.rewriter
class Combine:
    @R.function
    def pattern(x: R.Tensor((4, 4), "float32"), w1: R.Tensor((4, 4), "float32"), w2: R.Tensor((4, 4), "float32")):
        a = R.matmul(x, w1)
        b = R.matmul(x, w2)
        return (a, b)

    @R.function
    def replacement(x: R.Tensor((4, 4), "float32"), w1: R.Tensor((4, 4), "float32"), w2: R.Tensor((4, 4), "float32")):
        w = R.concat((w1, w2), axis=1)
        y = R.matmul(x, w)
        s = R.split(y, 2, axis=1)
        a = s[0]
        b = s[1]
        return (a, b)
# SEARCHED
@R.function
def main(x: R.Tensor((4, 4), "float32"), p: R.Tensor((4, 4), "float32"), q: R.Tensor((4, 4), "float32")):
    with R.dataflow():
        a = R.matmul(x, p)
        b = R.exp(a)
        q1 = R.nn.relu(q)
        c = R.matmul(x, q1)
        d = R.add(b, c)
        R.output(d)
    return d
# EXPECT
from tenon.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4, 4), dtype="float32"), p: R.Tensor((4, 4), dtype="float32"), q: R.Tensor((4, 4), dtype="float32")):
        with R.dataflow():
            q1: R.Tensor((4, 4), dtype="float32") = R.nn.relu(q)
            a: R.Tensor((4, 8), dtype="float32") = R.concat((p, q1), axis=1)
            a_1: R.Tensor((4, 8), dtype="float32") = R.matmul(x, a, out_dtype="void")
            a_2: R.Tuple(R.Tensor((4, 4), dtype="float32"), R.Tensor((4, 4), dtype="float32")) = R.split(a_1, indices_or_sections=2, axis=1)
            a_3: R.Tensor((4, 4), dtype="float32") = a_2[0]
            b: R.Tensor((4, 4), dtype="float32") = R.exp(a_3)
            c: R.Tensor((4, 4), dtype="float32") = a_2[1]
            d: R.Tensor((4, 4), dtype="float32") = R.add(b, c)
            R.output(d)
        return d
