# A statement outside of blocks read what the inlined block had written.
# expect: refused: is used outside of blocks too
# > sch.compute_inline(sch.get_block("fill"))
from tenon.script import tir as T

@T.prim_func
def kernel(x: T.Buffer((T.int64(4),), "float32"), y: T.Buffer((T.int64(4),), "float32"), z: T.Buffer((T.int64(4),), "float32")):
    t = T.alloc_buffer((T.int64(4),), "float32")
    for i in range(4):
        with T.block("fill"):
            v = T.axis.spatial(4, i)
            t[v] = x[v] + T.float32(1)
    for i in range(4):
        with T.block("use"):
            v = T.axis.spatial(4, i)
            y[v] = t[v] * T.float32(2)
    for i in range(4):
        z[i] = t[i]
