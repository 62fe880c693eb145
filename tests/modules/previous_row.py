from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((9, 8), "float32"), C: T.Buffer((9, 8), "float32")):
        B = T.sblock_alloc_buffer((9, 8), "float32")
        for j in range(9):
            for k in range(8):
                with T.sblock("produce"):
                    vj, vk = T.axis.remap("SS", [j, k])
                    B[vj, vk] = A[vj, vk] * T.float32(2)
            for k in range(8):
                with T.sblock("consume"):
                    vj = T.axis.opaque(9, j)
                    vk = T.axis.spatial(8, k)
                    C[vj, vk] = T.if_then_else(vj > 1, B[vj - 2, vk], T.float32(0)) + B[vj, vk]
