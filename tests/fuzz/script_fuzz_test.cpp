// SPDX-License-Identifier: Apache-2.0
// TVMScript of both levels.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "fuzz.h"
#include "readers/readers.h"
#include "tenon/script/parser.h"
#include "tenon/support/diagnostics.h"

namespace tenon::fuzz {
namespace {

const char* const kTensorIr = R"(from tenon.script import ir as I, tir as T

@I.ir_module
class Module:
    @T.prim_func
    def matmul(A: T.Buffer((16, 8), "float32"), B: T.Buffer((8, 4), "float32"), C: T.Buffer((16, 4), "float32")):
        T.func_attr({"tir.noalias": True, "global_symbol": "matmul"})
        acc = T.alloc_buffer((16, 4), "float32", scope="local")
        for i, j, k in T.grid(16, 4, 8):
            with T.block("matmul"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                T.reads(A[vi, vk], B[vk, vj])
                T.writes(acc[vi, vj])
                with T.init():
                    acc[vi, vj] = T.float32(0)
                acc[vi, vj] = acc[vi, vj] + A[vi, vk] * B[vk, vj]
        for i0 in T.parallel(16):
            for j0 in T.vectorized(4):
                with T.block("copy"):
                    vi = T.axis.spatial(16, i0)
                    vj = T.axis.spatial(4, j0)
                    T.where(i0 * 4 + j0 < 63)
                    C[vi, vj] = T.if_then_else(acc[vi, vj] > T.float32(0.5), T.exp(acc[vi, vj]), T.max(acc[vi, vj], T.float32(-1e-3)))

    @T.prim_func
    def symbolic(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n, 4), "float16")
        B = T.match_buffer(b, (n,), "int32")
        for i in range(n):
            if i % 2 == 0:
                B[i] = T.Cast("int32", A[i, 0]) + T.min(1, 2) // 3
            else:
                B[i] = T.Select(i < n - 1, 1, 0)
        T.evaluate(T.call_extern("int32", "f", 1))
)";

const char* const kGraph = R"(from tenon.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    I.module_attrs({"target": "llvm -mcpu=haswell"})
    @T.prim_func
    def scale(A: T.Buffer((T.int64(2), T.int64(4)), "float32"), B: T.Buffer((T.int64(2), T.int64(4)), "float32")):
        for i, j in T.grid(T.int64(2), T.int64(4)):
            B[i, j] = A[i, j] * T.float32(2)

    @R.function
    def main(x: R.Tensor((2, 4), "float32"), s: R.Tensor(("n", 4), "float32")) -> R.Tuple(R.Tensor((2, 4), "float32"), R.Tensor(("n", 4), "float32")):
        n = T.int64()
        cls = Module
        R.func_attr({"input_names": ["x", "s"]})
        with R.dataflow():
            lv = R.call_tir(cls.scale, (x,), out_sinfo=R.Tensor((2, 4), "float32"))
            lv1: R.Tensor((2, 4), "float32") = R.add(lv, R.const([[1.0, 2.0, 3.0, 4.0]], "float32"))
            lv2 = R.nn.relu(R.permute_dims(lv1, axes=[1, 0]))
            lv3 = R.reshape(lv2, R.shape([2, 4]))
            lv4 = R.concat((lv3, lv3), axis=0)
            lv5 = R.strided_slice(lv4, axes=[0], begin=[0], end=[2])
            gv = R.negative(s)
            R.output(lv5, gv)
        return (lv5, gv)
)";

const std::vector<std::string> kWords = {"(",
                                         ")",
                                         "[",
                                         "]",
                                         "{",
                                         "}",
                                         ":",
                                         ",",
                                         ".",
                                         "=",
                                         "\"",
                                         "'''",
                                         "#",
                                         "\\\n",
                                         "\n",
                                         "\n    ",
                                         "\n        ",
                                         "\t",
                                         "**",
                                         "//",
                                         "->",
                                         "@",
                                         "lambda x: x",
                                         "not ",
                                         " and ",
                                         " if ",
                                         " else ",
                                         "None",
                                         "True",
                                         "T.int64",
                                         "T.float32(",
                                         "T.Buffer(",
                                         "T.grid(",
                                         "T.block(\"b\")",
                                         "T.axis.remap(\"SSR\", [i, j, k])",
                                         "T.match_buffer(",
                                         "T.alloc_buffer(",
                                         "R.Tensor(",
                                         "R.Tuple(",
                                         "R.Shape(",
                                         "R.call_tir(",
                                         "R.const(",
                                         "R.dataflow()",
                                         "I.ir_module",
                                         "\"float8_e4m3fn\"",
                                         "\"float32x8\"",
                                         "\"int0\"",
                                         "\"handle\"",
                                         "nan",
                                         "inf",
                                         "0x",
                                         "1_0",
                                         "1e",
                                         "0b1",
                                         "-",
                                         "~",
                                         "<<",
                                         "T.Ramp(0, 1, 8)",
                                         "T.Broadcast(",
                                         "T.let(",
                                         "while True:",
                                         "for i in T.serial(",
                                         "return ",
                                         "def f():",
                                         "class C:",
                                         "((((((((((((((((",
                                         "[[[[[[[[[[[[[[[[",
                                         "--------",
                                         std::string(1, '\0'),
                                         "\xff",
                                         "\xe2\x80\xa8"};

TEST(Fuzz, Script) {
  expect_only_diagnostics({kTensorIr, kGraph}, {.name = "script", .seconds = 6, .words = kWords},
                          readers().at("script"));
}

// What nests deeper than any stack is refused, not followed.
TEST(Fuzz, DeepScript) {
  const auto repeat = [](const std::string& text, size_t n) {
    std::string out;
    for (size_t i = 0; i < n; ++i) out += text;
    return out;
  };
  const std::string head = "@T.prim_func\ndef f(A: T.Buffer((4,), \"int32\")):\n";
  for (const size_t n : {1000, 100000}) {
    std::string blocks = head;
    for (size_t i = 0; i < std::min<size_t>(n, 3000); ++i)
      blocks += std::string(4 + i, ' ') + "if A[0] == 1:\n";
    const std::string cases[] = {
        head + "    A[0] = " + repeat("(", n) + "1" + repeat(")", n) + "\n",
        head + "    A[0] = " + repeat("-", n) + "1\n",
        head + "    A[0] = " + repeat("not ", n) + "1\n",
        head + "    A[0] = " + repeat("A[", n) + "0" + repeat("]", n) + "\n",
        head + "    A[0] = 1" + repeat(" + 1", n) + "\n",
        head + "    A[0] = 1" + repeat(" ** 1", n) + "\n",
        head + "    A[0] = 1" + repeat(" if 1 else 1", n) + "\n",
        head + "    A[0] = T.f" + repeat(".a", n) + "\n",
        head + "    A[0] = f" + repeat("()", n) + "\n",
        head + "    A[0] = " + repeat("[", n) + "\n",
        head + "    A[0] = " + repeat("lambda: ", n) + "1\n",
        head + repeat("    for i in range(4):\n    ", n),
        blocks + std::string(4 + std::min<size_t>(n, 3000), ' ') + "pass\n",
        head + "    T.func_attr({\"a\": " + repeat("{\"a\": ", n) + "\n",
        repeat("@T.prim_func\n", n) + head,
        repeat("R.Tuple(", n),
        "@R.function\ndef f(x: " + repeat("R.Tuple(", n) + "R.Tensor" + repeat(")", n) +
            "):\n    return x\n",
    };
    for (const std::string& text : cases) {
      try {
        script::parse_module(text);
      } catch (const CompileError&) {
      }
    }
  }
}

/// The golden files of every form, and whole kernels, one a seed.
std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(TENON_SOURCE_DIR) / "tests" / folder))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> texts;
  for (const auto& path : paths) {
    std::ifstream in(path, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(in), {}};
    texts.push_back(text.substr(0, text.find("# EXPECT")));
  }
  return texts;
}

TEST(Fuzz, FormsOfScript) {
  std::vector<std::string> seeds = files_in("golden/script/forms");
  for (std::string& text : files_in("kernels")) seeds.push_back(std::move(text));
  ASSERT_GT(seeds.size(), 100u);
  expect_only_diagnostics(seeds, {.name = "forms", .words = kWords, .seeds_may_fail = true},
                          readers().at("script"));
}

}  // namespace
}  // namespace tenon::fuzz
