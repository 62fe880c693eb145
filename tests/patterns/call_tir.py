some = is_call_tir()
named = is_call_tir("kernel")
on = is_call_tir("other", [some])
twice = is_call_tir("kernel", [some])
two_args = is_call_tir("kernel", [wildcard(), wildcard()])
library = is_call_dps_packed("lib_f")
library_on = is_call_dps_packed("lib_f", [on])
other_library = is_call_dps_packed("lib_h")
some_library = is_call_dps_packed()
by_hand = is_op("relax.call_tir")(is_gv("kernel"), wildcard(), varg_default_wildcard=True)
# SEARCHED
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def kernel(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
        for i, j in T.grid(4, 4):
            with T.block("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + T.float32(1)

    @T.prim_func(private=True)
    def other(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
        for i, j in T.grid(4, 4):
            with T.block("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)

    @R.function
    def main(x: R.Tensor((4, 4), "float32")):
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.kernel, (x,), out_sinfo=R.Tensor((4, 4), "float32"))
            b = R.call_tir(cls.other, (a,), out_sinfo=R.Tensor((4, 4), "float32"))
            c = R.call_dps_packed("lib_f", (b,), out_sinfo=R.Tensor((4, 4), "float32"))
            d = R.call_dps_packed("lib_g", (c,), out_sinfo=R.Tensor((4, 4), "float32"))
            R.output(d)
        return d
# EXPECT
# main some: a; b
# main named: a
# main on: b(some=a)
# main twice: nothing
# main two_args: nothing
# main library: c
# main library_on: c(some=a, on=b)
# main other_library: nothing
# main some_library: c; d
# main by_hand: a
