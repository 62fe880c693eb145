# A block with int32 axes is read at int64 indices, and computed there.
from tvm.script import ir as I, tirx as T


@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n,), "float32")
        flags = T.alloc_buffer((5, 3), "bool")
        for i, j in T.grid(5, 3):
            with T.sblock("flags"):
                vi, vj = T.axis.remap("SS", [i, j])
                flags[vi, vj] = T.And(vi != 3, vj != 1)
        for i in range(n):
            with T.sblock("read"):
                v = T.axis.spatial(n, i)
                B[v] = T.Select(flags[4, T.min(v, 3 - 1)], A[v], T.float32(-1))
