// SPDX-License-Identifier: Apache-2.0
// What the command line reads and writes: lists of passes, .npy files, comparisons.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "tenon/driver/compare.h"
#include "tenon/driver/npy.h"
#include "tenon/driver/onnx_cases.h"
#include "tenon/driver/pass_list.h"
#include "tenon/driver/passes.h"
#include "tenon/driver/pipelines.h"
#include "tenon/driver/tensors.h"
#include "tenon/driver/usage.h"

namespace tenon {

namespace {

// ---- lists of passes

TEST(PassListTest, ReadsNamesAndLiterals) {
  const Pipeline passes = parse_pass_list(
      "FuseOps, PlanMemory(work_limit=-3, a='x\\n', b=[1, 2.5, None], c={\"k\": True,},)");
  ASSERT_EQ(passes.size(), 2U);
  EXPECT_EQ(passes[0].name, "FuseOps");
  EXPECT_EQ(passes[1].options.str(),
            R"({"a": "x\n", "b": [1, 2.5, None], "c": {"k": True}, "work_limit": -3})");
  EXPECT_TRUE(parse_pass_list("  ").empty());
  // Names as values need no quotes.
  EXPECT_EQ(parse_pass_list("RunCodegen(function=conv_relu, backend=toy)")[0].options.str(),
            R"({"backend": "toy", "function": "conv_relu"})");
  EXPECT_EQ(parse_pass_list("RunCodegen(options={\"a\": b.c}, x=[d, True])")[0].options.str(),
            R"({"options": {"a": "b.c"}, "x": ["d", True]})");
}

std::string error_in(std::string_view text) {
  try {
    parse_pass_list(text);
  } catch (const CompileError& error) {
    const Diagnostic& first = error.first();
    return fmt::format("{}:{}: {}", first.origin->line, first.origin->column, first.message);
  }
  return "accepted";
}

TEST(PassListTest, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(error_in("FuseOp"), "1:1: no pass `FuseOp`; did you mean `FuseOps`?");
  EXPECT_EQ(error_in("Zzzzzzzzzzzz"),
            "1:1: no pass `Zzzzzzzzzzzz`; `tenon opt --list-passes` lists them");
  EXPECT_EQ(error_in("FuseOps LegalizeOps"),
            "1:9: `LegalizeOps`; expected `,` or the end of the line");
  EXPECT_EQ(error_in("FuseOps(a)"), "1:9: an option without a name; expected `NAME=VALUE`");
  EXPECT_EQ(error_in("FuseOps(a=1,\n a=2)"), "2:2: option `a` is given twice");
  EXPECT_EQ(error_in("# comment\nFuseOps(a='x"), "2:11: a string that does not end");
  EXPECT_EQ(error_in("FuseOps(a=" + std::string(500, '[')),
            "1:409: nesting of more than 400 levels");
}

TEST(PassListTest, LinesAndCommentsSeparatePasses) {
  const Pipeline passes = parse_pass_list("# first\nFuseOps  # groups\n\n FuseTIR,\nLegalizeOps\n");
  ASSERT_EQ(passes.size(), 3U);
  EXPECT_EQ(passes[1].name, "FuseTIR");
  EXPECT_EQ(passes[1].origin->line, 4U);
  EXPECT_EQ(passes[1].origin->column, 2U);
}

TEST(PassListTest, PrintedPassesReadBack) {
  for (const char* text :
       {"FuseOps", "PlanMemory(a=\"x\\n\\t\\\"\", b=[1, 2.5, None], c={\"k\": True})"}) {
    const Pipeline passes = parse_pass_list(text);
    EXPECT_EQ(pass_text(passes.at(0)), text);
  }
  const Pipeline standard = standard_pipeline(), again = parse_pass_list(pipeline_text());
  ASSERT_EQ(again.size(), standard.size());
  for (size_t i = 0; i < again.size(); ++i) EXPECT_EQ(pass_text(again[i]), pass_text(standard[i]));
}

TEST(PipelineTest, EndsWhereItIsTold) {
  EXPECT_EQ(pipeline_until("LegalizeOps").back().name, "LegalizeOps");
  EXPECT_THROW(pipeline_until("NoSuchPass"), UsageError);
  for (const Pass& pass : all_passes()) {
    EXPECT_EQ(find_pass(pass.name).value().name, pass.name);
    EXPECT_FALSE(pass.summary.empty());
  }
}

// ---- .npy

class FilesTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "tenon_files_" + std::to_string(::getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& contents) const {
    const std::string path = folder_ + "/" + name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << contents;
    return path;
  }
  // A file of format 1 with this header and these elements.
  std::string npy(const std::string& header, const std::string& data) const {
    std::string file = "\x93NUMPY";
    file += {'\x01', '\x00', static_cast<char>(header.size()), '\x00'};
    return write("a.npy", file + header + data);
  }
  static std::string error_of(const std::string& path) {
    try {
      read_npy(path);
    } catch (const CompileError& error) {
      return std::string(error.first().code.id) + " " + error.first().message.substr(path.size());
    }
    return "accepted";
  }
  std::string folder_;
};

TEST_F(FilesTest, NpyRoundTrips) {
  for (const DType dtype : {kFloat32, kFloat64, kFloat16, kInt64, kInt8, kUInt16, kBool}) {
    for (const std::vector<int64_t>& shape :
         {std::vector<int64_t>{}, {0}, {5}, {2, 3}, {2, 0, 4}, {1, 2, 3, 4}}) {
      const Ref<TensorData> tensor = random_tensor(dtype, shape, 3);
      write_npy(folder_ + "/t.npy", *tensor);
      EXPECT_EQ(exact_difference(*read_npy(folder_ + "/t.npy"), *tensor), std::nullopt);
    }
  }
}

TEST_F(FilesTest, NpyOfColumnsIsReadByRows) {
  const std::string path = npy("{'descr': '|i1', 'fortran_order': True, 'shape': (2, 3), }",
                               std::string("\1\2\3\4\5\6", 6));
  EXPECT_EQ(read_npy(path)->to_ints(), (std::vector<int64_t>{1, 3, 5, 2, 4, 6}));
}

TEST_F(FilesTest, NpyThatIsBrokenIsRefused) {
  const auto header = [](const char* descr, const char* shape) {
    return fmt::format("{{'descr': {}, 'fortran_order': False, 'shape': {}, }}", descr, shape);
  };
  EXPECT_EQ(error_of(write("b.npy", "hello, world")), "TN0504 : not a .npy file");
  EXPECT_EQ(error_of(npy(header("'<f4'", "(2,)"), "1234567")),
            "TN0504 : 7 bytes of elements; float32 (2,) needs 8");
  EXPECT_EQ(
      error_of(npy(header("'>f4'", "(2,)"), "12345678")),
      "TN0001 : elements of NumPy type `>f4`; expected little-endian numbers, bools or texts");
  EXPECT_EQ(error_of(npy(header("'<U3'", "(2,)"), "12345678")),
            "TN0504 : 8 bytes of elements; 2 of 3 code points need 24");
  EXPECT_EQ(error_of(npy(header("[('a', '<f4')]", "(2,)"), "12345678")),
            "TN0001 : a structured array; expected one of numbers");
  EXPECT_EQ(error_of(npy(header("'<f4'", "(-2,)"), "")),
            "TN0504 : the header of the .npy file has a shape that is no tuple of sizes");
  EXPECT_TRUE(error_of(npy(header("'<f8'", "(4611686018427387904, 4)"), "")).starts_with("TN0109"));
  EXPECT_EQ(error_of(npy("{'descr': '<f4'}", "")),
            "TN0504 : the header of the .npy file has no `descr`, `fortran_order` or `shape`, or "
            "another key");
  EXPECT_EQ(
      error_of(npy("{'descr", "")),
      "TN0504 : the header of the .npy file has what is no literal: a string that does not end");
  std::string cut = "\x93NUMPY";
  cut += {'\x01', '\x00', '\x7f', '\x7f', ' ', ' ', ' '};
  EXPECT_EQ(error_of(write("c.npy", cut)), "TN0504 : ends inside its header");
}

// ---- comparing

Ref<TensorData> floats(const std::vector<float>& values) {
  return TensorData::of(kFloat32, {static_cast<int64_t>(values.size())}, values);
}

TEST(CompareTest, FollowsTheRules) {
  const auto nan = std::nanf(""), inf = INFINITY;
  EXPECT_FALSE(difference(*floats({1.0009F, nan, inf}), *floats({1, nan, inf}), kOnnxTolerance));
  EXPECT_TRUE(difference(*floats({1.0011F}), *floats({1}), kOnnxTolerance));
  EXPECT_TRUE(difference(*floats({-inf}), *floats({inf}), kOnnxTolerance));
  EXPECT_TRUE(difference(*floats({nan}), *floats({1}), kOnnxTolerance));
  // Of the whole tensor: the largest expected value counts.
  EXPECT_FALSE(difference(*floats({0.05F, 999}), *floats({0, 999}), {0, 0, 1e-4}));
  EXPECT_TRUE(difference(*floats({0.15F, 999}), *floats({0, 999}), {0, 0, 1e-4}));
  EXPECT_EQ(*difference(*floats({1, 2, 9}), *floats({1, 3, 5}), kOnnxTolerance),
            "element [1] is 2; expected 3 (2 of 3 wrong, largest error 4)");
  EXPECT_EQ(*difference(*floats({1, 2}), *floats({1}), kOnnxTolerance),
            "is float32 (2,); expected float32 (1,)");
  EXPECT_TRUE(exact_difference(*floats({0.0F}), *floats({-0.0F})));
  const auto big = [](int64_t value) {
    return TensorData::of(kInt64, {1}, std::vector<int64_t>{value});
  };
  EXPECT_TRUE(difference(*big((int64_t{1} << 53) + 1), *big(int64_t{1} << 53), {}));
}

// ---- cases in ONNX's layout

TEST_F(FilesTest, FindsCasesAtAnyDepth) {
  for (const char* file :
       {"a/b/one/model.onnx", "a/b/one/test_data_set_0/input_0.pb",
        "a/b/one/test_data_set_0/output_0.pb", "a/b/one/test_data_set_10/output_0.pb",
        "a/b/one/test_data_set_2/output_0.pb", "a/flat.onnx", "a/flat_output_0.pb", "a/alone.onnx"})
    write(file, "");
  const std::vector<OnnxCase> cases = find_onnx_cases(folder_);
  ASSERT_EQ(cases.size(), 2U);
  EXPECT_EQ(cases[0].name, "a/b/one");
  ASSERT_EQ(cases[0].data_sets.size(), 3U);
  EXPECT_EQ(cases[0].data_sets[0].inputs.size(), 1U);
  EXPECT_TRUE(cases[0].data_sets[2].outputs[0].find("test_data_set_10") != std::string::npos);
  EXPECT_EQ(cases[1].name, "a/flat");
  EXPECT_TRUE(cases[1].data_sets[0].generated_inputs);
  EXPECT_EQ(find_onnx_cases(folder_ + "/a/b/one/").at(0).name, "one");
  EXPECT_THROW(find_onnx_cases(folder_ + "/a/b/one/test_data_set_0"), CompileError);
  EXPECT_THROW(find_onnx_cases(folder_ + "/none"), CompileError);
}

TEST_F(FilesTest, OnnxCasesSayTheirTolerance) {
  const auto with = [&](const std::string& json) {
    write("case/model.onnx", "");
    write("case/data.json", json);
    return find_onnx_cases(folder_ + "/case").at(0).tolerance;
  };
  EXPECT_EQ(with("{}").relative, kOnnxTolerance.relative);
  EXPECT_EQ(with(R"({"rtol": 0, "url": "none"})").relative, 0);
  EXPECT_EQ(with(R"({"rtol": 0})").absolute, kOnnxTolerance.absolute);
  EXPECT_EQ(with(R"({"atol": 0.25})").absolute, 0.25);
  for (const char* wrong : {"", "[]", R"({"atol": -1})", R"({"rtol": "1e-3"})"})
    EXPECT_THROW(with(wrong), CompileError) << wrong;
}

}  // namespace

}  // namespace tenon
