# The reader was moved to its producer: what it reads is not there before their loops.
# expect: refused: in the loops of block `second` writes `t`
# > l0, = sch.get_loops(sch.get_block("first"))
# > sch.reverse_compute_at(sch.get_block("second"), l0)
# > sch.reindex_cache_read(sch.get_block("second"), read_buffer_index=0, storage_scope="local", axes=[0])
from tenon.script import tir as T

@T.prim_func
def kernel(data: T.Buffer((T.int64(3),), "float32"), out: T.Buffer((T.int64(3),), "float32")):
    t = T.alloc_buffer((T.int64(3),), "float32")
    for i0 in range(T.int64(3)):
        with T.block("first"):
            v_i0 = T.axis.spatial(T.int64(3), i0)
            t[v_i0] = data[v_i0] * T.float32(2)
    for i0 in range(T.int64(3)):
        with T.block("second"):
            v_i0 = T.axis.spatial(T.int64(3), i0)
            out[v_i0] = t[v_i0] + T.float32(1)
