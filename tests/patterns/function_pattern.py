x = wildcard()
inner = function_pattern([x], is_op("relax.exp")(x))
calls = inner(wildcard())
other = function_pattern([x], is_op("relax.tanh")(x))(wildcard())
two = function_pattern([x, wildcard()], is_op("relax.exp")(x))(wildcard())
marked = inner.has_attr({"Composite": "toy.exp"})(wildcard())
unmarked = inner.has_attr({"Composite": "toy.tanh"})(wildcard())
by_name = is_gv("f")(wildcard())
# SEARCHED
@I.ir_module
class Module:
    @R.function(private=True)
    def f(z: R.Tensor((4, 4), "float32")) -> R.Tensor((4, 4), "float32"):
        R.func_attr({"Composite": "toy.exp"})
        with R.dataflow():
            y = R.exp(z)
            R.output(y)
        return y

    @R.function
    def main(x: R.Tensor((4, 4), "float32")) -> R.Tensor((4, 4), "float32"):
        cls = Module
        with R.dataflow():
            a: R.Tensor((4, 4), "float32") = cls.f(x)
            b = R.exp(a)
            R.output(b)
        return b
# EXPECT
# f inner: nothing
# f calls: nothing
# f other: nothing
# f two: nothing
# f marked: nothing
# f unmarked: nothing
# f by_name: nothing
# main inner: nothing
# main calls: a(x=z, inner=cls.f)
# main other: nothing
# main two: nothing
# main marked: a(x=z, inner=cls.f)
# main unmarked: nothing
# main by_name: a
