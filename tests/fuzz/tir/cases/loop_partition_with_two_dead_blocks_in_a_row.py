# What is left of two statements is the second one itself, not a loop around it.
# expect: same
# > b0 = sch.cache_read(sch.get_block("matmul"), read_buffer_index=1, storage_scope="global")
# > l0, l1, l2 = sch.get_loops(sch.get_block("matmul"))
# > sch.compute_at(b0, l2)
# > l3, l4, l5 = sch.get_loops(b0)
# > l6, l7 = sch.split(l3, factors=[2, 5])
# > l8, l9, l10, l11 = sch.get_loops(sch.get_block("matmul"))
# > b1 = sch.decompose_reduction(sch.get_block("matmul"), l11)
# > l12, l13, l14, l15 = sch.get_loops(b0)
# > l16, l17 = sch.loop_partition(l13, points=[1])
from tenon.script import tir as T

@T.prim_func
def kernel(x: T.Buffer((T.int64(1), T.int64(1)), "float32"), w: T.Buffer((T.int64(1), T.int64(1)), "float32"), y: T.Buffer((T.int64(1), T.int64(1)), "float32")):
    for i0, i1, k0 in T.grid(T.int64(1), T.int64(1), T.int64(1)):
        with T.block("matmul"):
            v_i0, v_i1, v_k0 = T.axis.remap("SSR", [i0, i1, k0])
            with T.init():
                y[v_i0, v_i1] = T.float32(0)
            y[v_i0, v_i1] = y[v_i0, v_i1] + x[v_i0, v_k0] * w[v_k0, v_i1]
