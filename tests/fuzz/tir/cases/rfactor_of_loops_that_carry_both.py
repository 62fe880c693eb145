# A fused loop carries rows and a part of the sum: its first iteration is the first step of the first row alone.
# expect: refused: carries spatial axis `v_i0` and a reduction axis
# > l0, l1, l2 = sch.get_loops(sch.get_block("sum"))
# > l3 = sch.fuse(l0, l1)
# > sch.rfactor(l2)
from tenon.script import tir as T

@T.prim_func
def kernel(x: T.Buffer((T.int64(3), T.int64(2), T.int64(2)), "float32"), y: T.Buffer((T.int64(3),), "float32")):
    for i0, k0, k1 in T.grid(T.int64(3), T.int64(2), T.int64(2)):
        with T.block("sum"):
            v_i0, v_k0, v_k1 = T.axis.remap("SRR", [i0, k0, k1])
            with T.init():
                y[v_i0] = T.float32(0)
            y[v_i0] = y[v_i0] + x[v_i0, v_k0, v_k1]
