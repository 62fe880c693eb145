"""Softmax of each row, the number of rows symbolic."""
from tvm.script import tir as T


@T.prim_func
def softmax(a: T.handle, b: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n, T.int64(32)), "float32")
    B = T.match_buffer(b, (n, T.int64(32)), "float32")
    largest = T.alloc_buffer((n,), "float32")
    total = T.alloc_buffer((n,), "float32")
    for i, k in T.grid(n, T.int64(32)):
        with T.block("max"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                largest[vi] = T.min_value("float32")
            largest[vi] = T.max(largest[vi], A[vi, vk])
    for i, k in T.grid(n, T.int64(32)):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                total[vi] = T.float32(0)
            total[vi] += T.exp(A[vi, vk] - largest[vi])
    for i, k in T.grid(n, T.int64(32)):
        with T.block("norm"):
            vi, vk = T.axis.remap("SS", [i, k])
            B[vi, vk] = T.exp(A[vi, vk] - largest[vi]) / total[vi]
