from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((3, 4, 5), "float32"), B: T.Buffer((3, 4, 5), "float32")):
        last = T.sblock_alloc_buffer((5,), "float32")
        for i in range(3):
            for k in range(5):
                with T.sblock("z"):
                    vi = T.axis.opaque(3, i)
                    vk = T.axis.spatial(5, k)
                    last[vk] = T.Cast("float32", vi)
            for j in range(4):
                for k in range(5):
                    with T.sblock("step"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        vk = T.axis.opaque(5, k)
                        B[vi, vj, vk] = last[4 - vk] + A[vi, vj, vk]
                for k in range(5):
                    with T.sblock("keep"):
                        vi = T.axis.spatial(3, i)
                        vj = T.axis.opaque(4, j)
                        vk = T.axis.spatial(5, k)
                        last[vk] = B[vi, vj, vk]
