from tvm.script import tir as T


@T.prim_func
def my_sum(x: T.Buffer(("n", "m"), "float32"), y: T.Buffer(("n",), "float32")):
    T.func_attr({"op": "sum", "op_attrs": {"axis": [1], "keepdims": False}})
    n = T.int64()
    m = T.int64()
    for i in T.serial(n):
        y[i] = T.float32(0)
        for k in T.parallel(m):
            y[i] = y[i] + x[i, k]
