# SPDX-License-Identifier: Apache-2.0
# Sums of products of four bytes, of each pair of signs: in vectors, with sums that go before, and of single words.
# not TVM's
from tvm.script import ir as I, tirx as T


@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(
        X: T.Buffer((5, 35), "uint32"),
        W: T.Buffer((5, 35), "int32"),
        A: T.Buffer((35,), "int32"),
        B: T.Buffer((35,), "int32"),
        C: T.Buffer((35,), "uint32"),
        D: T.Buffer((35,), "uint32"),
        E: T.Buffer((5,), "int32"),
    ):
        # Bytes of every kind.
        U = T.sblock_alloc_buffer((5, 35), "uint32")
        S = T.sblock_alloc_buffer((5, 35), "int32")
        for i, j in T.grid(5, 35):
            with T.sblock("bytes"):
                k, v = T.axis.remap("SS", [i, j])
                U[k, v] = X[k, v] * T.uint32(2654435761) + T.Cast("uint32", v * 40503)
                S[k, v] = T.Cast("int32", T.Cast("uint32", W[k, v]) * T.uint32(2246822519)) + v * -30011
        for j, i in T.grid(35, 5):
            with T.sblock("unsigned_signed"):
                v, k = T.axis.remap("SR", [j, i])
                with T.init():
                    A[v] = 7
                A[v] = A[v] + T.dot4(U[k, v], S[k, v])
        for j, i in T.grid(35, 5):
            with T.sblock("signed_signed"):
                v, k = T.axis.remap("SR", [j, i])
                with T.init():
                    B[v] = 0
                B[v] = B[v] + T.dot4(S[k, v], S[k, v])
        for j in range(35):
            with T.sblock("unsigned_unsigned"):
                v = T.axis.spatial(35, j)
                C[v] = T.dot4(U[0, v], U[1, v])
        for j in range(35):
            with T.sblock("signed_unsigned"):
                v = T.axis.spatial(35, j)
                D[v] = T.dot4(S[0, v], U[1, v]) + U[2, v]
        for i in range(5):
            with T.sblock("single"):
                v = T.axis.spatial(5, i)
                E[v] = T.dot4(U[v, 3], S[v, 5])
