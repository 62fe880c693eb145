from tvm.script import tir as T


@T.prim_func
def my_sum(x: T.Buffer(("n", "m"), "float32"), y: T.Buffer(("n",), "float32")):
    T.func_attr({"op": "sum", "op_attrs": {"axis": [1], "keepdims": False}})
    n = T.int64()
    m = T.int64()
    for i in T.serial(n):
        with T.block("zero"):
            vi = T.axis.spatial(n, i)
            y[vi] = T.float32(0)
    for i, k in T.grid(n, m):
        with T.block("sum"):
            vi, vk = T.axis.remap("SS", [i, k])
            y[vi] = y[vi] + x[vi, vk]
