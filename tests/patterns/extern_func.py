# A foreign function: of any name, of one.
some = is_op("relax.call_dps_packed")(extern_func(), wildcard())
named = is_op("relax.call_dps_packed")(extern_func("lib_f"), wildcard())
other = is_op("relax.call_dps_packed")(extern_func("lib_h"), wildcard())
either = is_op("relax.call_dps_packed")(extern_func("lib_h") | extern_func("lib_g"), wildcard())
of_module = is_op("relax.call_dps_packed")(is_gv("kernel"), wildcard())
in_call_tir = is_op("relax.call_tir")(extern_func(), wildcard())
# SEARCHED
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def kernel(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
        for i, j in T.grid(4, 4):
            with T.block("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + T.float32(1)

    @R.function
    def main(x: R.Tensor((4, 4), "float32")):
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.kernel, (x,), out_sinfo=R.Tensor((4, 4), "float32"))
            b = R.call_dps_packed("lib_f", (a,), out_sinfo=R.Tensor((4, 4), "float32"))
            c = R.call_dps_packed("lib_g", (b,), out_sinfo=R.Tensor((4, 4), "float32"))
            R.output(c)
        return c
# EXPECT
# main some: b; c
# main named: b
# main other: nothing
# main either: c
# main of_module: nothing
# main in_call_tir: nothing
