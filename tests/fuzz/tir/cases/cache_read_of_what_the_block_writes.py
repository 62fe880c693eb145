# A copy of a running sum before the loops that compute it has none of it.
# expect: refused: writes `T_cumsum`
# > sch.cache_read(sch.get_block("T_cumsum"), read_buffer_index=1, storage_scope="global")
from tenon.script import tir as T

@T.prim_func
def kernel(data: T.Buffer((T.int64(3), T.int64(2)), "float32"), T_cumsum: T.Buffer((T.int64(3), T.int64(2)), "float32")):
    for i0, i1 in T.grid(T.int64(3), T.int64(2)):
        with T.block("T_cumsum"):
            v_i0 = T.axis.scan(T.int64(3), i0)
            v_i1 = T.axis.spatial(T.int64(2), i1)
            T_cumsum[v_i0, v_i1] = T.if_then_else(v_i0 == 0, data[v_i0, v_i1], T_cumsum[v_i0 - 1, v_i1] + data[v_i0, v_i1])
