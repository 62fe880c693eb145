# The predicate speaks of rows and of steps of the sum; without it the start would run beyond the last row.
# expect: same
# > l0, l1 = sch.get_loops(sch.get_block("sum"))
# > l2 = sch.fuse(l0, l1)
# > l3, l4 = sch.split(l2, factors=[5, None])
# > sch.decompose_reduction(sch.get_block("sum"), l3)
from tenon.script import tir as T

@T.prim_func
def kernel(x: T.Buffer((T.int64(4), T.int64(4)), "float32"), y: T.Buffer((T.int64(4),), "float32")):
    for i0, k0 in T.grid(T.int64(4), T.int64(4)):
        with T.block("sum"):
            v_i0, v_k0 = T.axis.remap("SR", [i0, k0])
            with T.init():
                y[v_i0] = T.float32(0)
            y[v_i0] = y[v_i0] + x[v_i0, v_k0]
