from tvm.script import tir as T


@T.prim_func
def my_transpose(x: T.Buffer(("n", "m"), "float32"), y: T.Buffer(("n", "m + 1"), "float32")):
    T.func_attr({"op": "permute_dims", "op_attrs": {"axes": [1, 0]}, "op_when": "n < m"})
    n = T.int64()
    m = T.int64()
    for i, j in T.grid(n, m):
        y[i, j] = x[i, j]
