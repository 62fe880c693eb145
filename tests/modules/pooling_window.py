from tvm.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((1, 2, 9, 9), "float32"), B: T.Buffer((1, 2, 4, 4), "float32")):
        for n, c, h, w, rh, rw in T.grid(1, 2, 4, 4, 3, 3):
            with T.sblock("b"):
                vn, vc, vh, vw, rvh, rvw = T.axis.remap("SSSSRR", [n, c, h, w, rh, rw])
                with T.init():
                    B[vn, vc, vh, vw] = T.min_value("float32")
                B[vn, vc, vh, vw] = T.max(B[vn, vc, vh, vw], A[vn, vc, vh * 2 + rvh, vw * 2 + rvw])
