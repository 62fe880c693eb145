# Two axes that are pieces of one scan kept their order each, and not together.
# expect: refused: must run in order
# > sch.split_block_iter(sch.get_block("scan"), axis=0, factor=3)
# > l0, l1 = sch.get_loops(sch.get_block("scan"))
# > sch.reorder(l1, l0)
from tenon.script import tir as T

@T.prim_func
def kernel(data: T.Buffer((T.int64(6),), "float32"), out: T.Buffer((T.int64(6),), "float32")):
    for i0 in range(T.int64(6)):
        with T.block("scan"):
            v_i0 = T.axis.scan(T.int64(6), i0)
            out[v_i0] = T.if_then_else(v_i0 == 0, data[v_i0], out[v_i0 - 1] + data[v_i0])
