// SPDX-License-Identifier: Apache-2.0
// A pattern over TensorIR that several tests look for.
#pragma once

namespace tenon {

/// A product of two matrices of any sizes.
inline constexpr const char* kProduct = R"(
@T.prim_func(private=True)
def product(a: T.handle, b: T.handle, c: T.handle):
    m, n, k = T.int64(), T.int64(), T.int64()
    A = T.match_buffer(a, (m, k), "float32")
    B = T.match_buffer(b, (k, n), "float32")
    C = T.match_buffer(c, (m, n), "float32")
    for i, j, r in T.grid(m, n, k):
        with T.block("C"):
            vi, vj, vr = T.axis.remap("SSR", [i, j, r])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vr] * B[vr, vj]
)";

}  // namespace tenon
