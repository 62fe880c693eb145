# The place was asked for in iterations in which the block that reads it does not run.
# expect: same
# > b0 = sch.cache_read(sch.get_block("take"), read_buffer_index=0, storage_scope="local")
# > l0, l1 = sch.get_loops(sch.get_block("take"))
# > l2, l3 = sch.split(l1, factors=[None, 5])
# > l4, l5, l6 = sch.get_loops(sch.get_block("take"))
# > sch.compute_at(b0, l6)
from tenon.script import tir as T

@T.prim_func
def kernel(x: T.Buffer((T.int64(1), T.int64(2)), "float32"), indices: T.Buffer((T.int64(1),), "int64"), out: T.Buffer((T.int64(1), T.int64(1)), "float32")):
    for i0, i1 in T.grid(T.int64(1), T.int64(1)):
        with T.block("take"):
            v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
            out[v_i0, v_i1] = x[v_i0, T.min(T.max(indices[v_i1], T.int64(0)), T.int64(1))]
