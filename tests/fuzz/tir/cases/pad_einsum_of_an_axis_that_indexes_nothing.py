# An axis of extent 1 no longer stands in any index; padded to 2, everything would be added up twice.
# expect: refused: does not index `y`
# > sch.reorder_block_iters(sch.get_block("matmul"), order=[2, 0, 1])
# > sch.pad_einsum(sch.get_block("matmul"), padding=[1, 1, 2])
from tenon.script import tir as T

@T.prim_func
def kernel(a: T.Buffer((T.int64(1), T.int64(3)), "float32"), b: T.Buffer((T.int64(3), T.int64(1)), "float32"), y: T.Buffer((T.int64(1), T.int64(1)), "float32")):
    for i0, i1, k0 in T.grid(T.int64(1), T.int64(1), T.int64(3)):
        with T.block("matmul"):
            v_i0, v_i1, v_k0 = T.axis.remap("SSR", [i0, i1, k0])
            with T.init():
                y[v_i0, v_i1] = T.float32(0)
            y[v_i0, v_i1] = y[v_i0, v_i1] + a[v_i0, v_k0] * b[v_k0, v_i1]
