# An axis of extent 1 that stands in no index was held by nothing but the list that it was dropped from.
# expect: refused: does not do what
# > l0, l1, l2, l3 = sch.get_loops(sch.get_block("pad_temp"))
# > sch.tensorize(l0, tensor_intrin="relu_impl")
from tenon.script import tir as T

@T.prim_func
def kernel(data: T.Buffer((T.int64(1), T.int64(1), T.int64(1), T.int64(1)), "float32"), out: T.Buffer((T.int64(1), T.int64(1), T.int64(1), T.int64(1)), "float32")):
    for i0, i1, i2, i3 in T.grid(T.int64(1), T.int64(1), T.int64(1), T.int64(1)):
        with T.block("pad_temp"):
            v_i0, v_i1, v_i2, v_i3 = T.axis.remap("SSSS", [i0, i1, i2, i3])
            out[0, 0, 0, 0] = T.if_then_else(v_i2 - 1 >= 0 and v_i3 - 1 < 1, data[0, 0, 0, 0], T.float32(1))
