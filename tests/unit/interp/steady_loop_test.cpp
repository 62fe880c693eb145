// SPDX-License-Identifier: Apache-2.0
// Loops that run in their steady form give what they give instruction after instruction: elements
// that are kept, results that stay in their place, memory that overlaps, and errors.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "tenon/interp/interpreter.h"
#include "tenon/script/parser.h"

namespace tenon::interp {
namespace {

struct Case {
  std::string name;
  std::string body;  // of a function of A (16, float32), B (16, float32), I (16, int64)
  std::string error = {};

  friend std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }
};

const Case kCases[] = {
    {"an element is kept", "for i in range(16):\n  B[i] = A[i] * A[3] + A[i] / A[3]"},
    {"a kept element is stored to",
     "for i in range(16):\n  B[i] = T.float32(0)\n"
     "for i in range(16):\n  B[i] = B[5] + A[i]"},
    {"the element before",
     "B[0] = A[0]\nfor i in range(15):\n  B[i + 1] = B[i] * T.float32(0.5) + A[i]"},
    {"the element behind",
     "for i in range(16):\n  B[i] = A[i]\n"
     "for i in range(15):\n  B[i] = B[i + 1] * B[i + 1] + T.exp(B[i])"},
    {"backwards", "for i in range(16):\n  B[15 - i] = T.tanh(A[i]) + A[15 - i]"},
    {"a result that stays",
     "B[2] = A[0]\nfor i in range(16):\n  B[2] = B[2] + T.exp(A[i] - A[1])\n"
     "for i in range(16):\n  if i != 2:\n    B[i] = A[i]"},
    {"a result among what is read",
     "for i in range(16):\n  B[i] = A[i]\n"
     "for i in range(16):\n  B[2] = B[2] + T.sqrt(T.abs(B[i]))"},
    {"two results",
     "B[0] = A[0]\nB[1] = A[0]\n"
     "for i in range(16):\n"
     "  B[0] = T.max(B[0], A[i]) * T.float32(0.5)\n"
     "  B[1] = B[1] + T.exp(A[i] - B[0])\n"
     "for i in range(2, 16):\n  B[i] = A[i]"},
    {"several statements",
     "for i in range(16):\n"
     "  B[i] = A[i] + A[15]\n"
     "  B[i] = B[i] * T.exp(A[i])\n"
     "  B[0] = B[i]"},
    {"views of one memory",
     "C = T.decl_buffer((8,), \"float32\", data=B.data)\n"
     "for i in range(16):\n  B[i] = A[i]\n"
     "for i in range(8):\n  B[i + 4] = C[i] + C[7] * T.float32(2)"},
    {"gathered", "for i in range(16):\n  B[i] = A[I[i]] * A[I[0]]"},
    {"scattered",
     "for i in range(16):\n  B[i] = T.float32(0)\n"
     "for i in range(16):\n  B[I[i]] = B[4] + B[I[i]] + A[i] * T.float32(2)"},
    {"a result is an index",
     "C = T.alloc_buffer((1,), \"int64\")\n"
     "C[0] = T.int64(0)\n"
     "for i in range(16):\n  B[C[0]] = A[i] * A[i]\n  C[0] = C[0] + T.int64(1)"},
    {"narrow types",
     "H = T.alloc_buffer((16,), \"float16\")\n"
     "Q = T.alloc_buffer((16,), \"int8\")\n"
     "for i in range(16):\n  H[i] = T.Cast(\"float16\", A[i])\n"
     "for i in range(16):\n  Q[i] = T.Cast(\"int8\", I[i] * T.int64(37))\n"
     "for i in range(16):\n  B[i] = T.Cast(\"float32\", H[i] * H[3]) + T.Cast(\"float32\", Q[i] + "
     "Q[2])"},
    {"halves are summed in a half",
     "H = T.alloc_buffer((1,), \"float16\")\n"
     "H[0] = T.float16(0)\n"
     "for i in range(16):\n  H[0] = H[0] + T.Cast(\"float16\", A[i])\n"
     "for i in range(16):\n  B[i] = T.Cast(\"float32\", H[0])"},
    {"a row of the loop outside",
     "for i, j in T.grid(4, 4):\n  B[i * 4 + j] = A[i] * A[i] + A[j * 4 + i]"},
    {"an element is not written",
     "C = T.alloc_buffer((16,), \"float32\")\n"
     "for i in range(9):\n  C[i] = A[i]\n"
     "for i in range(16):\n  B[i] = C[i] * T.float32(2) + T.exp(A[i])",
     "element (9) of buffer `C` is read before it is written"},
    {"a result is not written",
     "C = T.alloc_buffer((16,), \"float32\")\n"
     "for i in range(16):\n  C[1] = C[1] + T.exp(A[i])\n"
     "for i in range(16):\n  B[i] = A[i]",
     "element (1) of buffer `C` is read before it is written"},
    {"an index leaves the buffer", "for i in range(16):\n  B[i] = A[I[i] + 3] + A[0]",
     "index 18 of dimension 0 of buffer `A` lies outside of its extent 16"},
    {"a division by zero",
     "for i in range(16):\n  B[i] = T.Cast(\"float32\", T.int64(100) // (I[i] - 9)) + A[i]",
     "division by zero"},
};

IRModule module_of(const Case& test) {
  std::string text =
      "@T.prim_func\ndef main(A: T.Buffer((16,), \"float32\"), B: T.Buffer((16,), \"float32\"), "
      "I: T.Buffer((16,), \"int64\")):\n";
  std::istringstream lines(test.body);
  for (std::string line; std::getline(lines, line);) text += "    " + line + "\n";
  return script::parse_module(text);
}

// What B holds afterwards, or the error.
std::string outcome(const IRModule& module, const Options& options) {
  std::vector<float> a(16);
  std::vector<int64_t> i(16);
  for (int64_t k = 0; k < 16; ++k) {
    a[static_cast<size_t>(k)] = 0.3F * static_cast<float>(k * 7 % 16) - 1.7F;
    i[static_cast<size_t>(k)] = k * 5 % 16;
  }
  try {
    const auto results = Interpreter(module, options)
                             .run_prim_func("main", {TensorData::of<float>(kFloat32, {16}, a),
                                                     TensorData::of<float>(kFloat32, {16}, a),
                                                     TensorData::of<int64_t>(kInt64, {16}, i)});
    std::string text;
    for (const float value : results[1]->as_span<float>()) text += fmt::format("{:a} ", value);
    return text;
  } catch (const CompileError& error) {
    return error.first().message;
  }
}

class SteadyLoops : public testing::TestWithParam<Case> {};

TEST_P(SteadyLoops, GiveWhatEveryInstructionGives) {
  const IRModule module = module_of(GetParam());
  // What finds races runs instruction after instruction.
  const std::string expected = outcome(module, {.find_races = true});
  EXPECT_EQ(outcome(module, {}), expected);
  if (GetParam().error.empty())
    EXPECT_THAT(expected, testing::HasSubstr("0x"));
  else
    EXPECT_EQ(expected, GetParam().error);
}

INSTANTIATE_TEST_SUITE_P(All, SteadyLoops, testing::ValuesIn(kCases), [](const auto& test) {
  std::string name = test.param.name;
  std::ranges::replace(name, ' ', '_');
  return name;
});

}  // namespace
}  // namespace tenon::interp
