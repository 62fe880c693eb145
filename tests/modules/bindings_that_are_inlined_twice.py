# A value with a binding of its own is read at two places.
from tvm.script import ir as I, tirx as T


@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((2,), "int64"), B: T.Buffer((2,), "float32")):
        t = T.alloc_buffer((2,), "float32")
        for i in range(2):
            with T.sblock("t"):
                vi = T.axis.spatial(2, i)
                a = T.float32()
                t[vi] = T.Let(a * T.float32(1), where={a: T.Cast("float32", A[vi])})
        for i in range(2):
            with T.sblock("B"):
                vi = T.axis.spatial(2, i)
                B[vi] = T.max(T.float32(0), t[vi]) * t[1 - vi] + t[0]
