from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((6, 19), "float32"), I: T.Buffer((6,), "int32"), V: T.Buffer((6,), "float32")):
        for i, k in T.grid(6, 19):
            with T.sblock("b"):
                vi, vk = T.axis.remap("SR", [i, k])
                T.reads(A[vi, vk])
                T.writes(I[vi], V[vi])
                with T.init():
                    I[vi] = -1
                    V[vi] = T.min_value("float32")
                new_i: T.let[T.int32] = T.Select(V[vi] >= A[vi, vk], I[vi], vk)
                new_v: T.let[T.float32] = T.Select(V[vi] >= A[vi, vk], V[vi], A[vi, vk])
                I[vi] = new_i
                V[vi] = new_v
