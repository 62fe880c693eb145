from tvm.script import ir as I, relax as R, tirx as T


# Sums of floats in brackets, which C would take from left to right without them; the arithmetic of a GELU
# has one, too.
@I.ir_module
class Module:
    @T.prim_func
    def sums(x: T.Buffer((16,), "float32"), z: T.Buffer((16,), "float32"), y: T.Buffer((16,), "float32")):
        for i in range(16):
            with T.block("y"):
                v = T.axis.spatial(16, i)
                y[v] = x[v] + (T.float32(1e8) - (z[v] + T.float32(1e8)))

    @R.function
    def main(x: R.Tensor((16,), "float32"), z: R.Tensor((16,), "float32"), s: R.Tensor((), "float32")):
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.sums, (x, z), out_sinfo=R.Tensor((16,), "float32"))
            b = R.nn.gelu(s)
            c = R.nn.gelu_tanh(s)
            R.output(a, b, c)
        return (a, b, c)
