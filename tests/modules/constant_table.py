from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        # not TVM's any more
        KB = T.allocate_const([1.0, 2.0, 3.0, 4.0], "float32", [4])
        for i in range(8):
            B[i] = A[i] * KB[i % 4]
