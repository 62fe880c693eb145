"""One pass over the keys with a running maximum and sum, masked to the past."""
import math

from tvm.script import tir as T

HEADS, LENGTH, WIDTH = 2, 12, 16
SCALE = 1.0 / math.sqrt(WIDTH)


@T.macro
def rescale(buffer, row, factor):
    for d in range(WIDTH):
        buffer[row, d] = buffer[row, d] * factor


@T.prim_func
def attention(q: T.handle, k: T.handle, v: T.handle, o: T.handle):
    Q = T.match_buffer(q, (HEADS, LENGTH, WIDTH), "float32")
    K = T.match_buffer(k, (HEADS, LENGTH, WIDTH), "float32")
    V = T.match_buffer(v, (HEADS, LENGTH, WIDTH), "float32")
    O = T.match_buffer(o, (HEADS, LENGTH, WIDTH), "float32")
    for h, i in T.grid(HEADS, LENGTH):
        out = T.decl_buffer((1, WIDTH), "float32", scope="local")
        for d in range(WIDTH):
            out[0, d] = 0.0
        largest = T.float32("-inf")
        total = T.float32(0)
        for j in range(LENGTH):
            if j <= i:
                score = T.float32(0)
                for d in range(WIDTH):
                    score += Q[h, i, d] * K[h, j, d]
                score *= SCALE
                before = largest
                largest = T.max(largest, score)
                factor = T.exp(before - largest)
                weight = T.exp(score - largest)
                total = total * factor + weight
                rescale(out, 0, factor)
                for d in T.vectorized(WIDTH):
                    out[0, d] = out[0, d] + weight * V[h, j, d]
        for d in range(WIDTH):
            O[h, i, d] = out[0, d] / total
