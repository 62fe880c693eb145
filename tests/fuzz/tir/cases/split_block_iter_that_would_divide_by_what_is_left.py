# The layout is padded, and more of the axis would divide by what the padding gives.
# expect: refused: with axis `v0` up to 9 block `ratio` would divide by
# > b0 = sch.cache_read(sch.get_block("ratio"), read_buffer_index=1, storage_scope="global")
# > sch.transform_layout(b0, buffer=["write", 0], index_map=lambda i: (i // 3, i % 3), pad_value=10)
# > sch.split_block_iter(sch.get_block("ratio"), axis=0, factor=3)
from tenon.script import tir as T

@T.prim_func
def kernel(x: T.Buffer((T.int64(7),), "int32"), d: T.Buffer((T.int64(7),), "int32"), y: T.Buffer((T.int64(7),), "int32")):
    part = T.alloc_buffer((T.int64(7),), "int32")
    for i in range(T.int64(7)):
        with T.block("ratio"):
            v0 = T.axis.spatial(T.int64(7), i)
            part[v0] = x[v0] // (d[v0] - 10)
    for i in range(T.int64(7)):
        with T.block("out"):
            v0 = T.axis.spatial(T.int64(7), i)
            y[v0] = part[v0] + 1
