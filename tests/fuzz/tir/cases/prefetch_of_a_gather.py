# Where it will read is data that the hint would have to read first.
# expect: refused: depends on data
# > l0, = sch.get_loops(sch.get_block("take"))
# > sch.prefetch(sch.get_block("take"), l0, l0, read_buffer_index=0, distance=3)
from tenon.script import tir as T

@T.prim_func
def kernel(x: T.Buffer((T.int64(4),), "float32"), indices: T.Buffer((T.int64(3),), "int64"), out: T.Buffer((T.int64(3),), "float32")):
    for i0 in range(T.int64(3)):
        with T.block("take"):
            v_i0 = T.axis.spatial(T.int64(3), i0)
            out[v_i0] = x[T.max(T.min(indices[v_i0], 3), 0)]
