from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @T.prim_func(private=True, s_tir=True)
    def split(x: T.Buffer((T.int64(8),), "float32"), a: T.Buffer((T.int64(4),), "float32"), b: T.Buffer((T.int64(4),), "float32")):
        for i in range(T.int64(4)):
            with T.sblock("s"):
                vi = T.axis.spatial(T.int64(4), i)
                a[vi] = x[vi]
                b[vi] = x[vi + T.int64(4)]

    @R.function
    def main(x: R.Tensor((8,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        with R.dataflow():
            ab = R.call_tir(cls.split, (x,), out_ty=[R.Tensor((4,), "float32"), R.Tensor((4,), "float32")])
            a = ab[0]
            b = ab[1]
            c = R.multiply(a, b)
            R.output(c)
        return c
