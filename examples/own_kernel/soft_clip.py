# An operator that ONNX does not have, com.example's SoftClip: its type, its meaning, and a kernel for it.
from tvm.script import relax as R, tir as T


@R.function
def soft_clip(x: R.Tensor(("n", "m"), "float32"), limit: R.Prim("float32")) -> R.Tensor(("n", "m"), "float32"):
    R.func_attr({"op": "com.example::SoftClip", "op_attrs": {"limit": 1.0}})
    ...


@T.prim_func
def soft_clip_kernel(x: T.Buffer(("n", "m"), "float32"), y: T.Buffer(("n", "m"), "float32"), limit: T.float32):
    T.func_attr({"op": "com.example::SoftClip"})
    n = T.int64()
    m = T.int64()
    for i, j in T.grid(n, m):
        with T.block("clip"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = limit * T.tanh(x[vi, vj] / limit)
