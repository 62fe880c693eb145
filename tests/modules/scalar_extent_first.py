from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(n: T.int64, a: T.handle, b: T.handle):
        A = T.match_buffer(a, (n, 4), "float32")
        B = T.match_buffer(b, (4, n), "float32")
        for i, j in T.grid(n, T.int64(4)):
            with T.sblock("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vj, vi] = A[vi, vj]
