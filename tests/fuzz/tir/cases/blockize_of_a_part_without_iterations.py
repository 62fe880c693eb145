# A part of no iterations starts no sum: the other parts have given the element its value.
# expect: same
# > l0, l1, l2 = sch.get_loops(sch.get_block("matmul"))
# > l3, l4 = sch.split(l2, factors=[2, None])
# > l5, l6, l7, l8 = sch.get_loops(sch.get_block("matmul"))
# > l9, l10, l11 = sch.loop_partition(l8, points=[0, 1])
# > l12, l13, l14, l15 = sch.get_loops(sch.get_block("matmul_2"))
# > b0 = sch.blockize(l15)
from tenon.script import tir as T

@T.prim_func
def kernel(x: T.Buffer((T.int64(2), T.int64(1)), "float32"), w: T.Buffer((T.int64(1), T.int64(1)), "float32"), y: T.Buffer((T.int64(2), T.int64(1)), "float32")):
    for i0, i1, k0 in T.grid(T.int64(2), T.int64(1), T.int64(1)):
        with T.block("matmul"):
            v_i0, v_i1, v_k0 = T.axis.remap("SSR", [i0, i1, k0])
            with T.init():
                y[v_i0, v_i1] = T.float32(0)
            y[v_i0, v_i1] = y[v_i0, v_i1] + x[v_i0, v_k0] * w[v_k0, v_i1]
