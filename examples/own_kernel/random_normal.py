# ONNX's RandomNormal, which the importer does not have: its type, and a kernel that hashes the place of an element with the seed and makes a
# normal variable of two uniform ones (Box and Muller).
from tvm.script import relax as R, tir as T


@R.function
def random_normal(shape: R.Shape(["c", "h", "w"]), mean: R.Prim("float32"), scale: R.Prim("float32"),
                  seed: R.Prim("float32")) -> R.Tensor(("c", "h", "w"), "float32"):
    R.func_attr({"op": "ai.onnx::RandomNormal", "op_attrs": {"mean": 0.0, "scale": 1.0, "seed": "node"}})
    ...


@T.prim_func
def my_normal(y: T.Buffer(("c", "h", "w"), "float32"), mean: T.float32, scale: T.float32, seed: T.float32):
    T.func_attr({"op": "ai.onnx::RandomNormal"})
    c = T.int64()
    h = T.int64()
    w = T.int64()
    u = T.alloc_buffer((c, h, w, 2), "float32")
    for i, j, k, t in T.grid(c, h, w, 2):
        with T.block("uniform"):
            vi, vj, vk, vt = T.axis.remap("SSSS", [i, j, k, t])
            u[vi, vj, vk, vt] = T.Cast("float32", (((vi * h + vj) * w + vk) * 2 + vt + T.Cast("int64", seed) * 7919) * 48271 % 65537 * 40014 % 65537 + 1) / T.float32(65538)
    for i, j, k in T.grid(c, h, w):
        with T.block("normal"):
            vi, vj, vk = T.axis.remap("SSS", [i, j, k])
            y[vi, vj, vk] = mean + scale * T.sqrt(T.float32(-2) * T.log(u[vi, vj, vk, 0])) * T.cos(T.float32(6.2831855) * u[vi, vj, vk, 1])
