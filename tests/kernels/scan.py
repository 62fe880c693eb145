"""Running sums along a row: an axis whose order counts."""
from tvm.script import tir as T


@T.prim_func
def scan(A: T.Buffer((4, 24), "float32"), B: T.Buffer((4, 24), "float32")):
    for i in range(4):
        with T.block("first"):
            vi = T.axis.spatial(4, i)
            B[vi, 0] = A[vi, 0]
    for i, j in T.grid(4, 23):
        with T.block("next"):
            vi = T.axis.spatial(4, i)
            vj = T.axis.scan((1, 24), j + 1)
            T.reads(B[vi, vj - 1], A[vi, vj])
            T.writes(B[vi, vj])
            B[vi, vj] = B[vi, vj - 1] + A[vi, vj]
