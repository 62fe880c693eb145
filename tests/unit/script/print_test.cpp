// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "modules.h"

namespace tenon::script {

TEST(Print, BlocksOfASymbolicMatmul) {
  const auto n = Var::size("n");
  IRModule module;
  module.set("main", matmul(n, int64(8), int64(3)));
  EXPECT_EQ(print(module), R"(from tenon.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(var_A: T.handle, B: T.Buffer((T.int64(8), T.int64(3)), "float32"), var_C: T.handle):
        T.func_attr({"op_pattern": 4, "tir.noalias": True})
        n = T.int64(is_size_var=True)
        A = T.match_buffer(var_A, (n, T.int64(8)), "float32")
        C = T.match_buffer(var_C, (n, T.int64(3)), "float32")
        # with T.block("root"):
        T_pad = T.alloc_buffer((n, T.int64(3)), "float32")
        for i, j, k in T.grid(n, T.int64(3), T.int64(8)):
            with T.block("matmul"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                T.reads(A[vi, vk], B[vk, vj])
                T.writes(T_pad[vi, vj])
                with T.init():
                    T_pad[vi, vj] = T.float32(0.0)
                T_pad[vi, vj] = T_pad[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid(n, T.int64(3)):
            with T.block("copy"):
                vi = T.axis.spatial(n, i)
                vj = T.axis.spatial((T.int64(1), T.int64(4)), j + 1)
                T.where(i * 4 + j < n)
                T.reads(T_pad[vi, vj:vj + 4])
                T.writes(C[0:n, vj + 1:vj + 1 + 2])
                T.block_attr({"pragma": 4, "scale": 0.5})
                C[vi, 0] = T.max(T_pad[vi, vj], T.float32(0.1))
)");
}

}  // namespace tenon::script
