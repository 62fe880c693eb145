"""Vectors by slices, ramps and lanes, in explicit loops."""
from tvm.script import tir as T

LANES = 8


@T.prim_func
def blend(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
    for i in T.parallel(64 // LANES):
        x = A[i * LANES : i * LANES + LANES]
        y = B[T.ramp(i * LANES, 1, LANES)]
        C[i * LANES : i * LANES + LANES] = T.Select(
            x < y, x * 2.0 + y, T.Broadcast(T.float32(1), LANES) - y
        )
