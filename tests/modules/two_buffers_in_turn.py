from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((6, 8), "float32"), C: T.Buffer((6, 8), "float32")):
        B = T.sblock_alloc_buffer((2, 8), "float32")
        for j in range(6):
            for k in range(8):
                with T.sblock("w"):
                    vj = T.axis.opaque(6, j)
                    vk = T.axis.spatial(8, k)
                    T.reads(A[vj, vk])
                    T.writes(B[vj % 2, vk])
                    B[vj % 2, vk] = A[vj, vk] + T.float32(1)
            for k in range(8):
                with T.sblock("r"):
                    vj = T.axis.opaque(6, j)
                    vk = T.axis.spatial(8, k)
                    T.reads(B[0:2, vk])
                    T.writes(C[vj, vk])
                    C[vj, vk] = B[vj % 2, vk] - T.if_then_else(vj > 0, B[(vj + 1) % 2, vk], T.float32(0))
