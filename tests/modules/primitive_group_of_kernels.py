from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @T.prim_func(private=True, s_tir=True)
    def add(x: T.Buffer((T.int64(4),), "float32"), y: T.Buffer((T.int64(4),), "float32"), z: T.Buffer((T.int64(4),), "float32")):
        T.func_attr({"op_pattern": 0, "tirx.noalias": True})
        for i in range(T.int64(4)):
            with T.sblock("add"):
                vi = T.axis.spatial(T.int64(4), i)
                z[vi] = x[vi] + y[vi]

    @T.prim_func(private=True, s_tir=True)
    def exp(x: T.Buffer((T.int64(4),), "float32"), z: T.Buffer((T.int64(4),), "float32")):
        T.func_attr({"op_pattern": 0, "tirx.noalias": True})
        for i in range(T.int64(4)):
            with T.sblock("exp"):
                vi = T.axis.spatial(T.int64(4), i)
                z[vi] = T.exp(x[vi])

    @R.function(private=True)
    def fused_add_exp(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        R.func_attr({"Primitive": True})
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.add, (x, y), out_ty=R.Tensor((4,), "float32"))
            b = R.call_tir(cls.exp, (a,), out_ty=R.Tensor((4,), "float32"))
            R.output(b)
        return b

    @R.function
    def main(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        with R.dataflow():
            z: R.Tensor((4,), "float32") = cls.fused_add_exp(x, y)
            R.output(z)
        return z
