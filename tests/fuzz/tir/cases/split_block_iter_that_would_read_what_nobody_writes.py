# The layout has places that stand for no element; more of the axis would read them.
# expect: refused: with axis `v_i0` up to 9 block `maxelem` would read more of `data_global`, which is not known to be written as a whole
# > b0 = sch.cache_read(sch.get_block("maxelem"), read_buffer_index=0, storage_scope="global")
# > sch.transform_layout(b0, buffer=["write", 0], index_map=lambda i, j: (i, j % 3, j // 3), pad_value=None)
# > sch.split_block_iter(sch.get_block("maxelem"), axis=0, factor=3)
from tenon.script import tir as T

@T.prim_func
def kernel(data: T.Buffer((T.int64(1), T.int64(7)), "float32"), y: T.Buffer((T.int64(1), T.int64(7)), "float32")):
    maxelem = T.alloc_buffer((T.int64(7),), "float32")
    for i0, k0 in T.grid(T.int64(7), T.int64(1)):
        with T.block("maxelem"):
            v_i0, v_k0 = T.axis.remap("SR", [i0, k0])
            with T.init():
                maxelem[v_i0] = T.float32("-inf")
            maxelem[v_i0] = T.max(maxelem[v_i0], data[v_k0, v_i0])
    for i0, i1 in T.grid(T.int64(1), T.int64(7)):
        with T.block("subtract"):
            v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
            y[v_i0, v_i1] = data[v_i0, v_i1] - maxelem[v_i1]
