from tvm.script import ir as I, relax as R, tirx as T


# What attention over a cache is made of: rows of keys, whose number is known at run time, are columns of the scores.
# The keys become panels of whole vectors, narrower ones and single columns.
@I.ir_module
class Module:
    @R.function
    def main(q: R.Tensor((2, "m", 24), "float32"), keys: R.Tensor(("n", 30, 24), "float32"), p: R.Tensor(("k", 3), "float32")):
        m = T.int64()
        n = T.int64()
        k = T.int64()
        with R.dataflow():
            most = R.reshape(keys, R.shape([2, n * 15, 24]))
            rows = R.concat((most, R.strided_slice(most, axes=[1], begin=[0], end=[3])), axis=1)
            scores = R.einsum((q, rows), subscripts="bmk,bnk->bmn")
            back = R.einsum((scores, rows), subscripts="bmn,bnk->bmk")
            single = R.einsum((p, p), subscripts="ik,jk->ij")
            R.output(scores, back, single)
        return (scores, back, single)
