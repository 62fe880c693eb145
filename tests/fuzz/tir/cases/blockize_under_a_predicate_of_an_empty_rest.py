# The predicate names a loop that carries no axis, which the start of the reduction does not have.
# expect: same
# > l0, l1 = sch.get_loops(sch.get_block("sum"))
# > sch.reorder(l1, l0)
# > l2, l3 = sch.split(l0, factors=[5, None])
# > b0 = sch.blockize(l2)
from tenon.script import tir as T

@T.prim_func
def kernel(x: T.Buffer((T.int64(1), T.int64(2)), "float32"), y: T.Buffer((T.int64(1),), "float32")):
    for i0, k0 in T.grid(T.int64(1), T.int64(2)):
        with T.block("sum"):
            v_i0, v_k0 = T.axis.remap("SR", [i0, k0])
            with T.init():
                y[v_i0] = T.float32(0)
            y[v_i0] = y[v_i0] + x[v_i0, v_k0]
