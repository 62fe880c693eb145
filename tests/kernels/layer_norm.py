"""Layer normalisation: the statistics of a row in variables that change."""
from tvm.script import tir as T

ROWS, COLUMNS = 6, 40
EPSILON = 1e-5


@T.prim_func
def layer_norm(
    X: T.Buffer((ROWS, COLUMNS), "float32"),
    gamma: T.Buffer((COLUMNS,), "float32"),
    beta: T.Buffer((COLUMNS,), "float32"),
    Y: T.Buffer((ROWS, COLUMNS), "float32"),
):
    for r in T.parallel(ROWS):
        mean = T.float32(0)
        variance = T.float32(0)
        for c in range(COLUMNS):
            mean += X[r, c]
        mean /= COLUMNS
        for c in range(COLUMNS):
            centred = X[r, c] - mean
            variance += centred * centred
        scale = T.rsqrt(variance / COLUMNS + EPSILON)
        for c in range(COLUMNS):
            Y[r, c] = (X[r, c] - mean) * scale * gamma[c] + beta[c]
