# The callee by what it computes, whatever its name and order of loops.
@T.prim_func(private=True)
def add_one(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
    for j, i in T.grid(4, 4):
        with T.block("any"):
            vj, vi = T.axis.remap("SS", [j, i])
            B[vi, vj] = A[vi, vj] + T.float32(1)


adds = is_call_tir(add_one)
adds_x = is_call_tir(add_one, [is_var("x")])
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
# main adds: a
# main adds_x: a
