from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8, 16), "float32")):
        # not TVM's: a block with axes names a loop beside them
        for i, j in T.grid(8, 16):
            with T.sblock("a"):
                vi = T.axis.spatial(8, i)
                B[vi, j] = A[vi, j] + T.float32(1)
        for i in range(8):
            with T.sblock("row"):
                for j in range(16):
                    B[i, j] = B[i, j] * T.float32(2)
