from tvm.script import tir as T


@T.prim_func
def my_argmax(x: T.Buffer(("n", "m"), "float32"), y: T.Buffer(("n",), "int32")):
    T.func_attr({"op": "argmax", "op_attrs": {"axis": 1, "keepdims": False}})
    n = T.int64()
    m = T.int64()
    for i in range(n):
        y[i] = 0
        for k in range(m):
            if x[i, k] > x[i, y[i]]:
                y[i] = T.int32(k)
