# A kernel of two inputs, and of a scalar.
x = is_var("x")
product = is_call_tir("scaled", [x, wildcard()])
swapped = is_call_tir("scaled", [wildcard(), x])
same = is_call_tir("scaled", [x, x])
one = is_call_tir("scaled", [x])
three = is_call_tir("scaled", [x, wildcard(), wildcard()])
twice = is_call_tir("scaled", [wildcard(), wildcard()], tir_vars=(2,))
thrice = is_call_tir("scaled", [wildcard(), wildcard()], tir_vars=(3,))
any_scalar = is_call_tir("scaled", [wildcard(), wildcard()], tir_vars=("n",))
two_scalars = is_call_tir("scaled", [wildcard(), wildcard()], tir_vars=(2, 2))
no_scalar = is_call_tir("plain", [wildcard()], tir_vars=(2,))
# SEARCHED
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def scaled(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32"), C: T.Buffer((4, 4), "float32"), n: T.int64):
        for i, j in T.grid(4, 4):
            with T.block("c"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] * B[vi, vj] * T.Cast("float32", n)

    @T.prim_func(private=True)
    def plain(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
        for i, j in T.grid(4, 4):
            with T.block("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + T.float32(1)

    @R.function
    def main(x: R.Tensor((4, 4), "float32"), y: R.Tensor((4, 4), "float32")):
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.scaled, (x, y), out_sinfo=R.Tensor((4, 4), "float32"), tir_vars=R.shape([2]))
            b = R.call_tir(cls.scaled, (y, a), out_sinfo=R.Tensor((4, 4), "float32"), tir_vars=R.shape([3]))
            c = R.call_tir(cls.scaled, (x, x), out_sinfo=R.Tensor((4, 4), "float32"), tir_vars=R.shape([5]))
            d = R.call_tir(cls.plain, (b,), out_sinfo=R.Tensor((4, 4), "float32"))
            e = R.add(c, d)
            R.output(e)
        return e
# EXPECT
# main product: a(x=x); c(x=x)
# main swapped: c(x=x)
# main same: c(x=x)
# main one: nothing
# main three: nothing
# main twice: a
# main thrice: b
# main any_scalar: a; b; c
# main two_scalars: nothing
# main no_scalar: nothing
