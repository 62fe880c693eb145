# The packed copy reads for every point of the axes, the block only where the condition holds.
# expect: refused: which is not known to lie inside of its extent
# > sch.reindex_cache_read(sch.get_block("pad"), read_buffer_index=0, storage_scope="global", axes=[0])
from tenon.script import tir as T

@T.prim_func
def kernel(data: T.Buffer((T.int64(2),), "float32"), out: T.Buffer((T.int64(4),), "float32")):
    for i0 in range(T.int64(4)):
        with T.block("pad"):
            v_i0 = T.axis.spatial(T.int64(4), i0)
            out[v_i0] = T.if_then_else(v_i0 - 1 >= 0 and v_i0 - 1 < 2, data[v_i0 - 1], T.float32(0))
