# Two loops use the buffer that each iteration of the parallel one had to itself.
# expect: refused: it cannot be partitioned
# > l0, l1, l2, l3, l4, l5, l6 = sch.get_loops(sch.get_block("T_conv2d_transpose"))
# > sch.parallel(l3)
# > sch.compute_at(sch.get_block("pad_temp"), l6)
# > l7, l8 = sch.loop_partition(l3, points=[0])
from tenon.script import tir as T

@T.prim_func
def kernel(data: T.Buffer((T.int64(1), T.int64(1), T.int64(2), T.int64(2)), "float32"), weight: T.Buffer((T.int64(1), T.int64(2), T.int64(2), T.int64(2)), "float32"), T_conv2d_transpose: T.Buffer((T.int64(1), T.int64(2), T.int64(1), T.int64(2)), "float32")):
    pad_temp = T.alloc_buffer((T.int64(1), T.int64(1), T.int64(2), T.int64(3)), "float32")
    for i0, i1, i2, i3 in T.grid(T.int64(1), T.int64(1), T.int64(2), T.int64(3)):
        with T.block("pad_temp"):
            v_i0, v_i1, v_i2, v_i3 = T.axis.remap("SSSS", [i0, i1, i2, i3])
            pad_temp[v_i0, v_i1, v_i2, v_i3] = T.if_then_else(v_i2 - 1 >= 0 and v_i2 - 1 < 2 and v_i3 - 1 >= 0 and v_i3 - 1 < 2, data[v_i0, v_i1, v_i2 - 1, v_i3 - 1], T.float32(0.0))
    for i0, i1, i2, i3, k0, k1, k2 in T.grid(T.int64(1), T.int64(2), T.int64(1), T.int64(2), T.int64(1), T.int64(2), T.int64(2)):
        with T.block("T_conv2d_transpose"):
            v_i0, v_i1, v_i2, v_i3, v_k0, v_k1, v_k2 = T.axis.remap("SSSSRRR", [i0, i1, i2, i3, k0, k1, k2])
            T_conv2d_transpose[v_i0, v_i1, v_i2, v_i3] = T_conv2d_transpose[v_i0, v_i1, v_i2, v_i3] + pad_temp[v_i0, v_k0, v_i2 + v_k1, v_i3 + v_k2] * weight[v_k0, v_i1, 1 - v_k1, 1 - v_k2]
