from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((7, 29), "float32"), B: T.Buffer((7, 29), "float32")):
        m = T.sblock_alloc_buffer((7,), "float32")
        e = T.sblock_alloc_buffer((7, 29), "float32")
        s = T.sblock_alloc_buffer((7,), "float32")
        for i, k in T.grid(7, 29):
            with T.sblock("m"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    m[vi] = T.min_value("float32")
                m[vi] = T.max(m[vi], A[vi, vk])
        for i, j in T.grid(7, 29):
            with T.sblock("e"):
                vi, vj = T.axis.remap("SS", [i, j])
                e[vi, vj] = T.exp(A[vi, vj] - m[vi])
        for i, k in T.grid(7, 29):
            with T.sblock("s"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    s[vi] = T.float32(0)
                s[vi] = s[vi] + e[vi, vk]
        for i, j in T.grid(7, 29):
            with T.sblock("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = e[vi, vj] / s[vi]
