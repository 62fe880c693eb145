# The producer was moved into the loops of the block: nothing is there before them.
# expect: refused: in the loops of block `T_permute_dims_global` writes `T_permute_dims_global`
# > b0 = sch.cache_write(sch.get_block("T_permute_dims"), write_buffer_index=0, storage_scope="global")
# > l0, l1 = sch.get_loops(b0)
# > sch.compute_at(sch.get_block("T_permute_dims"), l1)
# > sch.cache_read(b0, read_buffer_index=0, storage_scope="local")
from tenon.script import tir as T

@T.prim_func
def kernel(x: T.Buffer((T.int64(2), T.int64(2)), "float32"), T_permute_dims: T.Buffer((T.int64(2), T.int64(2)), "float32")):
    for i0, i1 in T.grid(T.int64(2), T.int64(2)):
        with T.block("T_permute_dims"):
            v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
            T_permute_dims[v_i0, v_i1] = x[v_i1, v_i0]
