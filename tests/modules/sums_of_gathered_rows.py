from tvm.script import ir as I, relax as R, tirx as T


# Rows whose places are data, summed: vectors along a row. Samples of regions are such rows.
@I.ir_module
class Module:
    @T.prim_func(private=True, s_tir=True)
    def bags(table: T.handle, places: T.handle, weights: T.handle, out: T.handle):
        n = T.int64()
        Table = T.match_buffer(table, (T.int64(9), T.int64(21)), "float32")
        Places = T.match_buffer(places, (n, T.int64(5)), "int64")
        Weights = T.match_buffer(weights, (n, T.int64(5)), "float32")
        Out = T.match_buffer(out, (n, T.int64(21)), "float32")
        for i, j, k in T.grid(n, T.int64(21), T.int64(5)):
            with T.sblock("bags"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Out[vi, vj] = T.float32(0)
                Out[vi, vj] = Out[vi, vj] + Table[T.max(T.min(Places[vi, vk], T.int64(8)), T.int64(0)), vj] * Weights[vi, vk]

    @R.function
    def main(table: R.Tensor((9, 21), "float32"), p: R.Tensor(("n", 5), "float32"), x: R.Tensor((2, 19, 6, 7), "float32")) -> R.Tuple(R.Tensor(("n", 21), "float32"), R.Tensor(("n", 19, 2, 3), "float32"), R.Tensor(("n", 19, 2, 3), "float32")):
        n = T.int64()
        cls = Module
        with R.dataflow():
            places = R.astype(R.multiply(p, R.const(4.0, "float32")), dtype="int64")
            a = R.call_tir(cls.bags, (table, places, p), out_sinfo=R.Tensor((n, 21), "float32"))
            image = R.astype(R.greater(R.strided_slice(p, axes=[1], begin=[0], end=[1]), R.const(0.0, "float32")), dtype="float32")
            corners = R.multiply(R.strided_slice(p, axes=[1], begin=[1], end=[5]), R.const(5.0, "float32"))
            rois = R.concat((image, corners), axis=1)
            b = R.vision.roi_align(x, rois, pooled_size=[2, 3], sample_ratio=2, aligned=True)
            c = R.vision.roi_align(x, rois, pooled_size=[2, 3], sample_ratio=3, mode="max")
            R.output(a, b, c)
        return (a, b, c)
