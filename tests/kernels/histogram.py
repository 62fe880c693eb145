"""Indices that are read, a buffer that is read and written, and a loop that ends by itself."""
from tvm.script import tir as T


@T.prim_func
def histogram(data: T.Buffer((32,), "int32"), bins: T.Buffer((8,), "int32")):
    i = 0
    while i < 32:
        bin = T.floormod(data[i], 8)
        bins[bin] = bins[bin] + 1
        i += 1
