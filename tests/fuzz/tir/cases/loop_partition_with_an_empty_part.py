# A part of no iterations has no values that its blocks' axes could be cut down to.
# expect: same
# > l0, = sch.get_loops(sch.get_block("every_other"))
# > l1, l2 = sch.loop_partition(l0, points=[0])
from tenon.script import tir as T

@T.prim_func
def kernel(x: T.Buffer((T.int64(3),), "float32"), y: T.Buffer((T.int64(3),), "float32")):
    for i0 in range(T.int64(2)):
        with T.block("every_other"):
            v_i0 = T.axis.spatial(T.int64(3), i0 * 2)
            y[v_i0] = x[v_i0]
