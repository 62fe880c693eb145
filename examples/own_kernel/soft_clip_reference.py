# The same with a meaning in operators, against which `tenon check` compares the kernel.
from tvm.script import relax as R, tir as T


@R.function
def soft_clip(x: R.Tensor(("n", "m"), "float32"), limit: R.Prim("float32")) -> R.Tensor(("n", "m"), "float32"):
    R.func_attr({"op": "com.example::SoftClip", "op_attrs": {"limit": 1.0}})
    n = T.int64()
    m = T.int64()
    scale: R.Tensor((), "float32") = R.full(R.shape([]), limit, dtype="float32")
    inner: R.Tensor((n, m), "float32") = R.divide(x, scale)
    bent: R.Tensor((n, m), "float32") = R.tanh(inner)
    y: R.Tensor((n, m), "float32") = R.multiply(bent, scale)
    return y


@T.prim_func
def soft_clip_kernel(x: T.Buffer(("n", "m"), "float32"), y: T.Buffer(("n", "m"), "float32"), limit: T.float32):
    T.func_attr({"op": "com.example::SoftClip"})
    n = T.int64()
    m = T.int64()
    for i, j in T.grid(n, m):
        with T.block("clip"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = limit * T.tanh(x[vi, vj] / limit)
