// SPDX-License-Identifier: Apache-2.0
// Kernels as people write them (tests/kernels/): the interpreter and compiled code give what the
// formula says.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "tenon/driver/compare.h"
#include "tenon/driver/compiler.h"
#include "tenon/driver/entry.h"
#include "tenon/driver/executable.h"
#include "tenon/driver/load.h"
#include "tenon/driver/tensors.h"
#include "tenon/driver/verify.h"
#include "tenon/script/parser.h"
#include "tenon/tir/stmt.h"

namespace tenon {
namespace {

using Values = std::vector<double>;

struct KernelFile {
  const char* file;
  /// The elements of the output from those of the inputs.
  Values (*expected)(const std::vector<Values>& in);
};

Values matmul(const std::vector<Values>& in) {
  Values out(64 * 48);
  for (size_t i = 0; i < 64; ++i)
    for (size_t j = 0; j < 48; ++j) {
      for (size_t k = 0; k < 96; ++k) out[i * 48 + j] += in[0][i * 96 + k] * in[1][k * 48 + j];
      out[i * 48 + j] = std::max(out[i * 48 + j], 0.0);
    }
  return out;
}

Values conv2d(const std::vector<Values>& in) {
  Values out;
  for (size_t f = 0; f < 8; ++f)
    for (int y = 0; y < 7; ++y)
      for (int x = 0; x < 7; ++x) {
        double sum = in[2][f];
        for (size_t c = 0; c < 3; ++c)
          for (int i = 0; i < 3; ++i)
            for (int j = 0; j < 3; ++j) {
              const int row = 2 * y + i - 1, column = 2 * x + j - 1;
              if (row < 0 || row >= 14 || column < 0 || column >= 14) continue;
              sum += in[0][c * 196 + static_cast<size_t>(row * 14 + column)] *
                     in[1][(f * 3 + c) * 9 + static_cast<size_t>(i * 3 + j)];
            }
        out.push_back(sum);
      }
  return out;
}

Values softmax(const std::vector<Values>& in) {
  Values out;
  for (size_t r = 0; r < in[0].size(); r += 32) {
    double sum = 0;
    for (size_t c = 0; c < 32; ++c) sum += std::exp(in[0][r + c]);
    for (size_t c = 0; c < 32; ++c) out.push_back(std::exp(in[0][r + c]) / sum);
  }
  return out;
}

Values layer_norm(const std::vector<Values>& in) {
  Values out;
  for (size_t r = 0; r < 240; r += 40) {
    double mean = 0, variance = 0;
    for (size_t c = 0; c < 40; ++c) mean += in[0][r + c] / 40;
    for (size_t c = 0; c < 40; ++c) variance += std::pow(in[0][r + c] - mean, 2) / 40;
    for (size_t c = 0; c < 40; ++c)
      out.push_back((in[0][r + c] - mean) / std::sqrt(variance + 1e-5) * in[1][c] + in[2][c]);
  }
  return out;
}

// B is read as well as written, so it is an input too; what it holds does not count.
Values scan(const std::vector<Values>& in) {
  Values out = in[0];
  for (size_t i = 0; i < out.size(); ++i)
    if (i % 24 != 0) out[i] += out[i - 1];
  return out;
}

Values attention(const std::vector<Values>& in) {
  Values out;
  for (size_t h = 0; h < 2; ++h)
    for (size_t i = 0; i < 12; ++i) {
      Values sum(16);
      double total = 0;
      for (size_t j = 0; j <= i; ++j) {
        double score = 0;
        for (size_t d = 0; d < 16; ++d)
          score += in[0][(h * 12 + i) * 16 + d] * in[1][(h * 12 + j) * 16 + d] / 4;
        total += std::exp(score);
        for (size_t d = 0; d < 16; ++d) sum[d] += std::exp(score) * in[2][(h * 12 + j) * 16 + d];
      }
      for (const double x : sum) out.push_back(x / total);
    }
  return out;
}

Values histogram(const std::vector<Values>& in) {
  Values out = in[1];
  for (const double x : in[0]) out[static_cast<size_t>(static_cast<int64_t>(x) & 7)] += 1;
  return out;
}

Values blend(const std::vector<Values>& in) {
  Values out;
  for (size_t i = 0; i < 64; ++i) {
    const double x = in[0][i], y = in[1][i];
    out.push_back(x < y ? x * 2 + y : 1 - y);
  }
  return out;
}

Values quantised(const std::vector<Values>& in) {
  Values out;
  for (size_t i = 0; i < 4; ++i)
    for (size_t j = 0; j < 8; ++j) {
      double sum = 0;
      for (size_t k = 0; k < 32; ++k) sum += in[0][i * 32 + k] * in[1][j * 32 + k];
      const auto scaled = static_cast<float>(sum) * static_cast<float>(in[2][0]);
      out.push_back(std::clamp(std::nearbyint(scaled) + 128.0F, 0.0F, 255.0F));
    }
  return out;
}

const KernelFile kFiles[] = {
    {"attention.py", attention}, {"conv2d.py", conv2d},
    {"histogram.py", histogram}, {"layer_norm.py", layer_norm},
    {"matmul.py", matmul},       {"quantised.py", quantised},
    {"scan.py", scan},           {"softmax.py", softmax},
    {"vectors.py", blend},
};

Values values_of(const TensorData& data) {
  Values out;
  for (int64_t i = 0; i < data.elements(); ++i) out.push_back(data.at_float(i));
  return out;
}

// Sums of at most 96 products of float32, each below 1: off by less than 1e-5.
void expect_near(const TensorData& got, const Values& expected, const std::string& who) {
  ASSERT_EQ(static_cast<size_t>(got.elements()), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(got.at_float(static_cast<int64_t>(i)), expected[i], 1e-5) << who << " " << i;
}

TEST(KernelFiles, InterpretedAndCompiled) {
  const std::filesystem::path folder =
      std::filesystem::path(TENON_SOURCE_DIR) / "tests" / "kernels";
  size_t found = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    found += entry.is_regular_file();
  EXPECT_EQ(found, std::size(kFiles)) << "a file without a test";
  for (const KernelFile& kernel : kFiles) {
    SCOPED_TRACE(kernel.file);
    const IRModule module = with_entry(load_module((folder / kernel.file).string()));
    const auto meaning = interpreted(module);
    const auto inputs = make_inputs(meaning->signature(), {.files = {}, .dims = {}, .seed = 1});
    std::vector<Values> elements;
    for (const auto& input : inputs) elements.push_back(values_of(*input));
    const Values expected = kernel.expected(elements);
    const auto interpreted_out = meaning->run(inputs);
    ASSERT_EQ(interpreted_out.size(), 1u);
    expect_near(*interpreted_out[0], expected, "the interpreter");
    CompileRequest request;
    request.target = resolve("native");
    const auto program = compiled(link(generate(lower(module, request), request)));
    const auto compiled_out = program->run(inputs);
    ASSERT_EQ(compiled_out.size(), 1u);
    expect_near(*compiled_out[0], expected, "compiled code");
  }
}

// What the kernel reads and writes is copied by loops over its sizes, which may be int32.
TEST(Entry, CopiesBuffersOfInt32Sizes) {
  const IRModule module = with_entry(script::parse_module(R"(@T.prim_func
def add_to_first(a: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 2), "float32")
    for i in range(n):
        A[i, 0] = A[i, 0] + T.float32(1)
)"));
  EXPECT_TRUE(module.find<tir::PrimFunc>("copy"));
  verify_module(module);
  EXPECT_NO_THROW(check_text(module));
}

TEST(Entry, IsFoundOrAskedFor) {
  const auto entry_of = [](const std::string& text) {
    return with_entry(script::parse_module(text));
  };
  const std::string copy = R"(@T.prim_func
def copy(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        B[i] = A[i]
)";
  const IRModule one = entry_of(copy);
  EXPECT_TRUE(one.find<tir::PrimFunc>("copy"));
  const auto main = one.find<tir::PrimFunc>("main");
  ASSERT_TRUE(main);
  EXPECT_EQ(main->attrs.get<int64_t>("tenon.num_inputs"), 1);
  EXPECT_EQ(signature_of(one).outputs.at(0).name, "B");
  const IRModule graph = entry_of(R"(@R.function
def net(x: R.Tensor((4,), "float32")):
    return R.exp(x)
)");
  EXPECT_TRUE(graph.contains("main"));
  EXPECT_FALSE(graph.contains("net"));
  const auto refuses = [&](const std::string& text, const std::string& words) {
    try {
      entry_of(text);
      ADD_FAILURE() << "no error";
    } catch (const CompileError& error) {
      EXPECT_NE(error.first().message.find(words), std::string::npos) << error.what();
    }
  };
  refuses(copy + "@T.prim_func\ndef other(A: T.Buffer((4,), \"float32\")):\n    A[0] = 1.0\n",
          "`copy`, `other`");
  refuses("@T.prim_func\ndef f(A: T.Buffer((4,), \"float32\")):\n    assert A[0] > 0.0, \"no\"\n",
          "writes none");
  refuses(
      "@T.prim_func\ndef f(A: T.Buffer((4,), \"float32\")) -> T.int32:\n    return A[0] > 0.0\n",
      "returns a value");
}

}  // namespace
}  // namespace tenon
