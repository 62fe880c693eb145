# A column is no dense row: the implementation has a buffer without strides.
# expect: refused: cannot be given these regions
# > l0, l1 = sch.get_loops(sch.get_block("sum"))
# > l2, l3 = sch.split(l1, factors=[None, 2])
# > sch.tensorize(l3, tensor_intrin="add_to_impl")
from tenon.script import tir as T

@T.prim_func
def kernel(data: T.Buffer((T.int64(6), T.int64(6)), "float32"), out: T.Buffer((T.int64(6),), "float32")):
    for i0, k0 in T.grid(T.int64(6), T.int64(6)):
        with T.block("sum"):
            v_i0, v_k0 = T.axis.remap("SR", [i0, k0])
            with T.init():
                out[v_i0] = T.float32(0)
            out[v_i0] = out[v_i0] + data[v_k0, v_i0]
