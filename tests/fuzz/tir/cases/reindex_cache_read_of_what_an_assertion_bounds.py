# The rows that count lie inside of the buffer, as is asserted before they are read.
# expect: same
# > b0 = sch.reindex_cache_read(sch.get_block("double"), read_buffer_index=0, storage_scope="global", axes=[0])
from tenon.script import tir as T

@T.prim_func
def kernel(var_data: T.handle, var_out: T.handle):
    room, n = T.int64(is_size_var=True), T.int64(is_size_var=True)
    data = T.match_buffer(var_data, (room,), "float32")
    out = T.match_buffer(var_out, (n,), "float32")
    with T.block("check_bounds"):
        T.reads()
        T.writes()
        assert n <= room, "too few rows"
    for i0 in range(n):
        with T.block("double"):
            v_i0 = T.axis.spatial(n, i0)
            out[v_i0] = data[v_i0] + data[v_i0]
