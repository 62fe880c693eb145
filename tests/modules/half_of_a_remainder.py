# A remainder as a float16: in C an operand of a cast.
from tvm.script import ir as I, tirx as T


@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((3,), "float16"), B: T.Buffer((3,), "float16")):
        for i in range(3):
            with T.sblock("b"):
                v = T.axis.spatial(3, i)
                B[v] = A[v] + T.Cast("float16", v % 2) * T.float16(0.5)
