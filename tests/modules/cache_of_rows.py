from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((16, 24), "float32"), B: T.Buffer((16, 24), "float32")):
        row = T.sblock_alloc_buffer((16, 24), "float32")
        for i in range(16):
            for j in range(24):
                with T.sblock("row"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    row[vi, vj] = A[vi, vj] * A[vi, vj]
            for j in range(24):
                with T.sblock("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = row[vi, 23 - vj] + T.float32(1)
