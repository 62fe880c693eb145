"""Bytes multiplied and summed in 32 bits, then scaled back with rounding."""
from tvm.script import tir as T


@T.prim_func
def dense(
    X: T.Buffer((4, 32), "uint8"),
    W: T.Buffer((8, 32), "int8"),
    scale: T.float32,
    Y: T.Buffer((4, 8), "uint8"),
):
    total = T.alloc_buffer((4, 8), "int32")
    for i, j, k in T.grid(4, 8, 32):
        with T.block("dot"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                total[vi, vj] = 0
            total[vi, vj] += T.cast(X[vi, vk], "int32") * T.cast(W[vj, vk], "int32")
    for i, j in T.grid(4, 8):
        with T.block("requantise"):
            vi, vj = T.axis.remap("SS", [i, j])
            scaled = T.round(T.cast(total[vi, vj], "float32") * scale) + 128.0
            Y[vi, vj] = T.cast(T.min(T.max(scaled, 0.0), 255.0), "uint8")
