# Several results together, in a branch, and with operands from outside of it. What stands in two blocks is not together.
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
@I.ir_module
class Module:
    @R.function
    def main(c: R.Tensor((), "bool"), x: R.Tensor((4, 4), "float32"), v: R.Tensor((4, 4), "float32"), w: R.Tensor((4, 4), "float32")) -> R.Tensor((4, 4), "float32"):
        e = R.exp(w)
        z = R.matmul(x, v)
        if c:
            a = R.matmul(x, v)
            b = R.matmul(x, e)
            y = R.add(a, b)
        else:
            d = R.matmul(x, w)
            y = R.negative(d)
        u = R.matmul(x, y)
        t = R.add(u, z)
        return t
# EXPECT
from tenon.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @R.function
    def main(c: R.Tensor((), dtype="bool"), x: R.Tensor((4, 4), dtype="float32"), v: R.Tensor((4, 4), dtype="float32"), w: R.Tensor((4, 4), dtype="float32")) -> R.Tensor((4, 4), dtype="float32"):
        e: R.Tensor((4, 4), dtype="float32") = R.exp(w)
        if c:
            a: R.Tensor((4, 8), dtype="float32") = R.concat((v, e), axis=1)
            a_1: R.Tensor((4, 8), dtype="float32") = R.matmul(x, a, out_dtype="void")
            a_2: R.Tuple(R.Tensor((4, 4), dtype="float32"), R.Tensor((4, 4), dtype="float32")) = R.split(a_1, indices_or_sections=2, axis=1)
            a_3: R.Tensor((4, 4), dtype="float32") = a_2[0]
            b: R.Tensor((4, 4), dtype="float32") = a_2[1]
            y_1: R.Tensor((4, 4), dtype="float32") = R.add(a_3, b)
            y: R.Tensor((4, 4), dtype="float32") = y_1
        else:
            d: R.Tensor((4, 4), dtype="float32") = R.matmul(x, w, out_dtype="void")
            y_2: R.Tensor((4, 4), dtype="float32") = R.negative(d)
            y: R.Tensor((4, 4), dtype="float32") = y_2
        z: R.Tensor((4, 8), dtype="float32") = R.concat((y, v), axis=1)
        z_1: R.Tensor((4, 8), dtype="float32") = R.matmul(x, z, out_dtype="void")
        z_2: R.Tuple(R.Tensor((4, 4), dtype="float32"), R.Tensor((4, 4), dtype="float32")) = R.split(z_1, indices_or_sections=2, axis=1)
        z_3: R.Tensor((4, 4), dtype="float32") = z_2[1]
        u: R.Tensor((4, 4), dtype="float32") = z_2[0]
        t: R.Tensor((4, 4), dtype="float32") = R.add(u, z_3)
        return t
