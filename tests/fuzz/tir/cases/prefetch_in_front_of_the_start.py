# A guarded read looks in front of the buffer; the hint must not.
# expect: same
# > l0, = sch.get_loops(sch.get_block("pad"))
# > sch.prefetch(sch.get_block("pad"), l0, l0, read_buffer_index=0, distance=3)
from tenon.script import tir as T

@T.prim_func
def kernel(data: T.Buffer((T.int64(2),), "float32"), out: T.Buffer((T.int64(9),), "float32")):
    for i0 in range(T.int64(9)):
        with T.block("pad"):
            v_i0 = T.axis.spatial(T.int64(9), i0)
            out[v_i0] = T.if_then_else(v_i0 - 6 >= 0 and v_i0 - 6 < 2, data[v_i0 - 6], T.float32(0))
