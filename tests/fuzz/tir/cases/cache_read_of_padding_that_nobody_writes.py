# A layout that rounds up leaves places that hold nothing; a copy of the whole buffer would read them.
# expect: refused: is not known to be written as a whole
# > b0 = sch.cache_read(sch.get_block("copy"), read_buffer_index=0, storage_scope="global")
# > sch.transform_layout(b0, buffer=["write", 0], index_map=lambda i: (i // 3, i % 3), pad_value=None)
# > sch.cache_read(sch.get_block("copy"), read_buffer_index=0, storage_scope="local")
from tenon.script import tir as T

@T.prim_func
def kernel(data: T.Buffer((T.int64(4),), "float32"), out: T.Buffer((T.int64(4),), "float32")):
    for i0 in range(T.int64(4)):
        with T.block("copy"):
            v_i0 = T.axis.spatial(T.int64(4), i0)
            out[v_i0] = data[v_i0]
