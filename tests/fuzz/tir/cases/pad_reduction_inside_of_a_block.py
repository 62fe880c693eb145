# Inside of a block made by blockize the loops of the block outside count too; made afresh they would run once for each of its
# instances.
# expect: refused: is not known to run once at each point of its domain
# > l0, l1 = sch.get_loops(sch.get_block("sum"))
# > b0 = sch.blockize(l1)
# > sch.pad_reduction(sch.get_block("sum"), axis=1, factor=4)
from tenon.script import tir as T

@T.prim_func
def kernel(x: T.Buffer((T.int64(3), T.int64(5)), "float32"), y: T.Buffer((T.int64(3),), "float32")):
    for i0, k0 in T.grid(T.int64(3), T.int64(5)):
        with T.block("sum"):
            v_i0, v_k0 = T.axis.remap("SR", [i0, k0])
            with T.init():
                y[v_i0] = T.float32(0)
            y[v_i0] = y[v_i0] + x[v_i0, v_k0]
