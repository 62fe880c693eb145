// SPDX-License-Identifier: Apache-2.0
// Kernels of one's own for operators: which calls they take, what becomes of them, and how wrong
// ones are found.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "../../targets/everywhere.h"
#include "checked_kernels.h"
#include "tenon/driver/compare.h"
#include "tenon/driver/compiler.h"
#include "tenon/driver/executable.h"
#include "tenon/driver/model_options.h"
#include "tenon/driver/pass_list.h"
#include "tenon/driver/tensors.h"
#include "tenon/driver/usage.h"
#include "tenon/driver/verify.h"
#include "tenon/graph/kernels.h"
#include "tenon/script/parser.h"
#include "tenon/script/printer.h"

namespace tenon {
namespace {

// Doubles instead of what the operator does, so that its use shows.
std::string kernel(const std::string& name, const std::string& annotations,
                   const std::string& shape = "(\"n\", \"m\")",
                   const std::string& dtype = "float32") {
  const std::string buffer = "T.Buffer(" + shape + ", \"" + dtype + "\")";
  return "@T.prim_func\ndef " + name + "(x: " + buffer + ", y: " + buffer +
         "):\n    T.func_attr({" + annotations + "})\n    n = T.int64()\n    m = T.int64()\n" +
         "    for i, j in T.grid(x.shape[0], x.shape[1]):\n        with T.block(\"double\"):\n" +
         "            vi, vj = T.axis.remap(\"SS\", [i, j])\n"
         "            y[vi, vj] = x[vi, vj] + x[vi, vj]\n\n";
}

std::string main_of(const std::string& call, const std::string& type = "(3, 8), \"float32\"") {
  return "@R.function\ndef main(x: R.Tensor(" + type + ")) -> R.Tensor(" + type +
         "):\n    with R.dataflow():\n        y = " + call +
         "\n        R.output(y)\n    return y\n";
}

IRModule parse(const std::string& text) {
  IRModule module = ModelOptions().prepare(script::parse_module(text));
  verify_module(module);
  return with_target(std::move(module), parse_target("llvm -mcpu=haswell"));
}

std::vector<Remark> remarks_of(const std::string& text) {
  return run_pipeline(parse(text), parse_pass_list("SelectKernels")).remarks;
}

// "double used; other dtype": the kernels and what became of them, in order.
std::string story(const std::string& text) {
  std::string out;
  for (const Remark& remark : remarks_of(text))
    out += (out.empty() ? "" : "; ") + remark.decision->candidate + " " +
           (remark.verdict == "used" ? remark.verdict : remark.reason);
  return out;
}

std::vector<Ref<TensorData>> compile_and_run(const IRModule& module,
                                             const std::vector<Ref<TensorData>>& inputs) {
  return testing_targets::run_everywhere(module, inputs);
}

TEST(OwnKernels, TakesTheCallsOfItsOperator) {
  const std::string relu = main_of("R.nn.relu(x)");
  EXPECT_EQ(story(kernel("mine", "\"op\": \"nn.relu\"") + relu), "mine used");
  EXPECT_EQ(story(kernel("mine", "\"op\": \"relu\"") + relu), "mine used");
  EXPECT_EQ(story(kernel("mine", "\"op\": \"Relu\"") + relu), "mine used");
  EXPECT_EQ(story(kernel("mine", "\"op\": \"nn.gelu\"") + relu), "");
}

TEST(OwnKernels, SaysWhyItDoesNotTakeACall) {
  const std::string relu = main_of("R.nn.relu(x)"), soft = main_of("R.nn.softmax(x, axis=-1)");
  EXPECT_EQ(story(kernel("k", "\"op\": \"relu\"", "(\"n\", \"m\")", "float64") + relu), "k dtype");
  std::string deep = kernel("k", "\"op\": \"relu\"", "(\"n\", \"m\", 1)");
  for (size_t at; (at = deep.find("vj]")) != std::string::npos;) deep.replace(at, 3, "vj, 0]");
  EXPECT_EQ(story(deep + relu), "k rank");
  EXPECT_EQ(story(kernel("k", "\"op\": \"relu\"", "(\"n\", \"n\")") + relu), "k shape");
  EXPECT_EQ(story(kernel("k", "\"op\": \"relu\"", "(\"n\", 16)") + relu), "k shape");
  EXPECT_EQ(story(kernel("k", "\"op\": \"softmax\", \"op_attrs\": {\"axis\": 0}") + soft),
            "k attribute");
  EXPECT_EQ(story(kernel("k", "\"op\": \"softmax\", \"op_attrs\": {\"axis\": 1}") + soft),
            "k used");
  EXPECT_EQ(story(kernel("k", "\"op\": \"relu\", \"op_when\": \"m % 16 == 0\"") + relu),
            "k condition");
  EXPECT_EQ(story(kernel("k", "\"op\": \"relu\", \"op_when\": \"m % 8 == 0 and n < m\"") + relu),
            "k used");
  EXPECT_EQ(story(kernel("k", "\"op\": \"relu\", \"op_target\": \"avx512\"") + relu), "k target");
  EXPECT_EQ(story(kernel("k", "\"op\": \"relu\", \"op_target\": [\"avx2\", \"fma\"]") + relu),
            "k used");
  EXPECT_EQ(story(kernel("a", "\"op\": \"relu\"") +
                  kernel("b",
                         "\"op\": \"relu\", "
                         "\"op_priority\": 3") +
                  relu),
            "b used; a lower-priority");
}

TEST(OwnKernels, RefusalsShowBothSides) {
  const auto remarks =
      remarks_of(kernel("k", "\"op\": \"relu\"", "(\"n\", 16)") + main_of("R.nn.relu(x)"));
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_NE(remarks[0].detail.find("dimension 1 of `x` is 8; buffer `x` of the kernel has 16"),
            std::string::npos)
      << remarks[0].detail;
}

TEST(OwnKernels, AConditionThatFailsIsToldWithItsValues) {
  const std::string narrow =
      kernel("wide", "\"op\": \"relu\", \"op_when\": \"m % 16 == 0 and n < m\"");
  const auto remarks = remarks_of(narrow + main_of("R.nn.relu(x)"));
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_NE(remarks[0].detail.find("`m % 16 == 0 and n < m` does not hold with m = 8, n = 3"),
            std::string::npos)
      << remarks[0].detail;
}

TEST(OwnKernels, OnlyAKernelThatWouldTakeTheCallHasLowerPriority) {
  const std::string first = kernel("first", "\"op\": \"relu\", \"op_priority\": 3");
  const std::string relu = main_of("R.nn.relu(x)");
  EXPECT_EQ(story(first + kernel("k", "\"op\": \"relu\", \"op_when\": \"m % 16 == 0\"") + relu),
            "first used; k condition");
  EXPECT_EQ(story(first + kernel("k", "\"op\": \"relu\"", "(\"n\", 16)") + relu),
            "first used; k shape");
  const auto remarks = remarks_of(first + kernel("k", "\"op\": \"relu\"") + relu);
  EXPECT_NE(remarks[1].detail.find("it would take the call, but `first` has priority 3, and it 0"),
            std::string::npos)
      << remarks[1].detail;
}

TEST(OwnKernels, ASymbolicConditionMustBeProved) {
  const std::string symbolic = main_of("R.nn.relu(x)", "(\"b\", 8), \"float32\"");
  EXPECT_EQ(story(kernel("k", "\"op\": \"relu\", \"op_when\": \"n <= 64\"") + symbolic),
            "k condition");
  EXPECT_EQ(story(kernel("k", "\"op\": \"relu\", \"op_when\": \"n >= 0 and m == 8\"") + symbolic),
            "k used");
  EXPECT_EQ(story(kernel("k", "\"op\": \"relu\"", "(\"n\", \"n\")") + symbolic), "k shape");
}

TEST(OwnKernels, ComputesWhatItSays) {
  const IRModule module = parse(kernel("mine", "\"op\": \"nn.relu\"") + main_of("R.nn.relu(x)"));
  const auto x = random_tensor(kFloat32, {3, 8}, 1);
  const auto y = compile_and_run(module, {x});
  for (int64_t i = 0; i < 24; ++i) EXPECT_EQ(y[0]->at_float(i), 2 * x->at_float(i));
}

constexpr const char* kLeaky = R"(
@T.prim_func
def leaky(x: T.Buffer(("n", "m"), "float32"), y: T.Buffer(("n", "m"), "float32"), alpha: T.float32):
    T.func_attr({"op": "LeakyRelu"})
    n = T.int64()
    m = T.int64()
    for i, j in T.grid(n, m):
        with T.block("leaky"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = T.max(x[vi, vj], x[vi, vj] * alpha)
)";

TEST(OwnKernels, AttributesAreScalarParameters) {
  const IRModule module = parse(kLeaky + main_of("R.nn.leakyrelu(x, alpha=0.25)"));
  const PipelineResult selected = run_pipeline(module, parse_pass_list("SelectKernels"));
  const std::string text = script::print(selected.module);
  EXPECT_NE(text.find("T.float32(0.25)"), std::string::npos) << text;
  EXPECT_EQ(text.find("R.nn.leakyrelu"), std::string::npos) << text;
  const auto x = random_tensor(kFloat32, {3, 8}, 1);
  const auto wanted = interpreted(parse(main_of("R.nn.leakyrelu(x, alpha=0.25)")))->run({x});
  EXPECT_EQ(exact_difference(*compile_and_run(module, {x})[0], *wanted[0]), std::nullopt);
}

TEST(OwnKernels, FusesLikeOurOwn) {
  const std::string chain =
      "@R.function\ndef main(x: R.Tensor((3, 8), \"float32\")) -> R.Tensor((3, 8), \"float32\"):\n"
      "    with R.dataflow():\n        a = R.exp(x)\n        b = R.nn.relu(a)\n        y = "
      "R.tanh(b)\n        R.output(y)\n    return y\n";
  CompileRequest request;
  request.target = resolve("native");
  EXPECT_EQ(lower(parse(kernel("mine", "\"op\": \"relu\"") + chain), request).kernels, 1);
  // A scheduled one is left as it is.
  std::string scheduled = kernel("mine", "\"op\": \"relu\", \"tir.is_scheduled\": True");
  EXPECT_EQ(lower(parse(scheduled + chain), request).kernels, 3);
}

// A kernel for 1x1 convolutions of (1, in, size, size).
std::string pointwise_conv(int in, int out, int size) {
  return fmt::format(R"(
@T.prim_func
def conv(x: T.Buffer((1, {0}, {2}, {2}), "float32"), w: T.Buffer(({1}, {0}, 1, 1), "float32"), y: T.Buffer((1, {1}, {2}, {2}), "float32")):
    T.func_attr({{"op": "Conv", "op_attrs": {{"strides": 1, "padding": 0, "groups": 1}}}})
    for o, h, v, c in T.grid({1}, {2}, {2}, {0}):
        with T.block("conv"):
            vo, vh, vv, vc = T.axis.remap("SSSR", [o, h, v, c])
            with T.init():
                y[0, vo, vh, vv] = T.float32(0)
            y[0, vo, vh, vv] = y[0, vo, vh, vv] + x[0, vc, vh, vv] * w[vo, vc, 0, 0]
)",
                     in, out, size);
}

TEST(OwnKernels, OtherPassesDoNotTakeTheOperatorFirst) {
  // The layout pass would block its channels, the batch norm would be folded into its weights.
  const std::string text = pointwise_conv(16, 16, 8) + R"(
@R.function
def main(x: R.Tensor((1, 16, 8, 8), "float32"), w: R.Tensor((16, 16, 1, 1), "float32")) -> R.Tensor((1, 16, 8, 8), "float32"):
    with R.dataflow():
        a = R.nn.conv2d(x, w)
        b = R.nn.relu(a)
        R.output(b)
    return b
)";
  const IRModule module = parse(text);
  const PipelineResult after =
      run_pipeline(module, parse_pass_list("SelectKernels, FoldConstant, SimplifyGraph, "
                                           "FoldBatchnormToConv2D, ConvertLayout, LegalizeOps"));
  const std::string printed = script::print(after.module);
  EXPECT_NE(printed.find("R.call_tir(cls.conv_1, (x, w)"), std::string::npos) << printed;
  EXPECT_EQ(printed.find("layout_transform"), std::string::npos) << printed;
}

// A convolution by the kernel, then what `tail` says of `a`.
std::string conv_network(const std::string& tail, const std::string& weight = "w") {
  return pointwise_conv(4, 3, 5) + R"(
@R.function
def main(x: R.Tensor((1, 4, 5, 5), "float32"), v: R.Tensor((3, 4, 1, 1), "float32")) -> R.Tensor((1, 3, 5, 5), "float32"):
    with R.dataflow():
        w = R.const([[[[1.0]], [[-2.0]], [[0.5]], [[3.0]]], [[[0.25]], [[1.5]], [[-1.0]], [[2.0]]], [[[4.0]], [[1.0]], [[0.0]], [[-0.5]]]], "float32")
        a = R.nn.conv2d(x, )" +
         weight + ")\n" + tail + "        R.output(y)\n    return y\n";
}
constexpr const char* kNorm =
    "R.nn.batch_norm(%, R.const([0.5, 2.0, -1.0], \"float32\"), R.const([1.0, 0.0, 3.0], "
    "\"float32\"), R.const([0.1, -0.2, 0.3], \"float32\"), R.const([1.5, 0.5, 2.5], "
    "\"float32\"), axis=1, training=False)[0]\n";
std::string norm_of(const std::string& value) {
  std::string text = kNorm;
  return text.replace(text.find('%'), 1, value);
}

TEST(OwnKernels, ABatchNormBehindOneIsFoldedIntoItsWeights) {
  const std::string bias =
      "        b = R.add(a, R.const([[[1.0]], [[2.0]], [[-3.0]]], \"float32\"))\n";
  for (const std::string& tail :
       {"        y = " + norm_of("a"), bias + "        y = " + norm_of("b")}) {
    const IRModule module = parse(conv_network(tail));
    const PipelineResult folded =
        run_pipeline(module, parse_pass_list("SelectKernels, FoldBatchnormToConv2D, FoldConstant, "
                                             "DeadCodeElimination"));
    const std::string text = script::print(folded.module);
    EXPECT_NE(text.find("R.call_tir(cls.conv_1, (x, R.const"), std::string::npos) << text;
    EXPECT_EQ(text.find("multiply"), std::string::npos) << text;
    EXPECT_EQ(text.find("batch_norm"), std::string::npos) << text;
    EXPECT_NE(text.find("R.add"), std::string::npos) << text;
    const auto x = random_tensor(kFloat32, {1, 4, 5, 5}, 1);
    const auto v = random_tensor(kFloat32, {3, 4, 1, 1}, 2);
    const auto wanted = interpreted(module)->run({x, v}), got = compile_and_run(module, {x, v});
    EXPECT_EQ(difference(*got[0], *wanted[0], {1e-5, 1e-5}), std::nullopt);
  }
}

TEST(OwnKernels, ABatchNormIsNotFoldedWhereTheKernelsWeightsAreNoConstants) {
  const IRModule module = parse(conv_network("        y = " + norm_of("a"), "v"));
  const PipelineResult after =
      run_pipeline(module, parse_pass_list("SelectKernels, FoldBatchnormToConv2D, FoldConstant"));
  const std::string text = script::print(after.module);
  EXPECT_NE(text.find("R.call_tir(cls.conv_1, (x, v)"), std::string::npos) << text;
  EXPECT_NE(text.find("R.multiply"), std::string::npos) << text;
}

TEST(OwnKernels, ABatchNormIsNotFoldedIntoAKernelWhoseResultIsUsedTwice) {
  const IRModule module =
      parse(conv_network("        b = " + norm_of("a") + "        y = R.add(a, b)\n"));
  const PipelineResult after =
      run_pipeline(module, parse_pass_list("SelectKernels, FoldBatchnormToConv2D, FoldConstant"));
  EXPECT_NE(script::print(after.module).find("R.multiply"), std::string::npos);
}

constexpr const char* kClip = R"(
@R.function
def soft_clip(x: R.Tensor(("n", "m"), "float32"), limit: R.Prim("float32")) -> R.Tensor(("n", "m"), "float32"):
    R.func_attr({"op": "com.example::SoftClip"})
    ...

@T.prim_func
def clip(x: T.Buffer(("n", "m"), "float32"), y: T.Buffer(("n", "m"), "float32"), limit: T.float32):
    T.func_attr({"op": "com.example::SoftClip"%s})
    n = T.int64()
    m = T.int64()
    for i, j in T.grid(n, m):
        with T.block("clip"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = T.min(x[vi, vj], limit)

@R.function
def main(x: R.Tensor((3, 8), "float32")) -> R.Tensor((3, 8), "float32"):
    y: R.Tensor((3, 8), "float32") = cls.soft_clip(x, R.prim_value(T.float32(0.5)))
    return y
)";
std::string clip_with(const std::string& more) {
  std::string text = kClip;
  return text.replace(text.find("%s"), 2, more);
}

TEST(OwnKernels, ADeclaredOperatorPrintsInterpretsAndCompiles) {
  const IRModule module = parse(clip_with(""));
  check_text(module);
  EXPECT_NE(script::print(module).find("        ...\n"), std::string::npos)
      << script::print(module);
  const auto x = random_tensor(kFloat32, {3, 8}, 1);
  const auto meaning = interpreted(module)->run({x});
  for (int64_t i = 0; i < 24; ++i)
    EXPECT_EQ(meaning[0]->at_float(i), std::min(x->at_float(i), 0.5));
  EXPECT_EQ(exact_difference(*compile_and_run(module, {x})[0], *meaning[0]), std::nullopt);
}

TEST(OwnKernels, ADeclaredOperatorWithoutAKernelIsAnError) {
  const IRModule module = parse(clip_with(", \"op_when\": \"m > 100\""));
  CompileRequest request;
  request.target = resolve("native");
  try {
    lower(module, request);
    FAIL() << "it compiled";
  } catch (const CompileError& error) {
    EXPECT_EQ(error.first().code.name, "no-kernel");
    EXPECT_NE(error.first().message.find("`m > 100` does not hold"), std::string::npos)
        << error.what();
  }
}

// x * scale + shift, of which either may be left out; a kernel for each form but that of both.
std::string affine(const std::string& main) {
  const auto kernel = [](const std::string& name, const std::string& inputs,
                         const std::string& more, const std::string& value) {
    return "@T.prim_func\ndef " + name + "(x: T.Buffer((\"n\", \"m\"), \"float32\"), " + inputs +
           "y: T.Buffer((\"n\", \"m\"), \"float32\")):\n"
           "    T.func_attr({\"op\": \"com.example::Affine\"" +
           more +
           "})\n    n = T.int64()\n    m = T.int64()\n    for i, j in T.grid(n, m):\n"
           "        with T.block(\"affine\"):\n"
           "            vi, vj = T.axis.remap(\"SS\", [i, j])\n            y[vi, vj] = " +
           value + "\n\n";
  };
  const std::string s = "s: T.Buffer((\"m\",), \"float32\"), ",
                    t = "t: T.Buffer((\"m\",), \"float32\"), ";
  const std::string declared =
      "op\": \"com.example::Affine\", \"op_attrs\": {\"scale\": None, \"shift\": None}";
  const std::string head = "@R.function\ndef ", x = "(x: R.Tensor((\"n\", \"m\"), \"float32\")",
                    vector = ": R.Tensor((\"m\",), \"float32\")",
                    result =
                        ") -> R.Tensor((\"n\", \"m\"), \"float32\"):\n"
                        "    R.func_attr({\"" +
                        declared;
  const auto form = [&](const std::string& name, const std::string& input,
                        const std::string& left_out) {
    return head + name + x + ", " + input + vector + result + ", \"op_left_out\": [\"" + left_out +
           "\"], \"op_optional\": [\"scale\", \"shift\"]})\n    ...\n\n";
  };
  return head + "affine" + x + ", scale" + vector + ", shift" + vector + result +
         "})\n    ...\n\n" + form("scale_only", "scale", "shift") +
         form("shift_only", "shift", "scale") +
         kernel("both", s + t, "", "x[vi, vj] * s[vj] + t[vj]") +
         kernel("scaled", s, "", "x[vi, vj] * s[vj]") +
         kernel("shifted", t, ", \"op_attrs\": {\"scale\": None}", "x[vi, vj] + t[vj]") +
         "@R.function\ndef main(x: R.Tensor((3, 8), \"float32\"), v: R.Tensor((8,), \"float32\")) "
         "-> "
         "R.Tensor((3, 8), \"float32\"):\n    y: R.Tensor((3, 8), \"float32\") = " +
         main + "\n    return y\n";
}

TEST(OwnKernels, OptionalInputsThatAreLeftOutChooseTheKernel) {
  const auto x = random_tensor(kFloat32, {3, 8}, 1), v = random_tensor(kFloat32, {8}, 2);
  const auto used = [](const std::string& text) {
    for (const Remark& remark : remarks_of(text))
      if (remark.verdict == "used") return remark.decision->candidate;
    return std::string();
  };
  const auto expect = [&](const std::string& call, const std::string& kernel, bool scales,
                          bool shifts) {
    EXPECT_EQ(used(affine(call)), kernel);
    const IRModule module = parse(affine(call));
    check_text(module);
    const auto got = compile_and_run(module, {x, v}), meaning = interpreted(module)->run({x, v});
    for (int64_t i = 0; i < 24; ++i) {
      const double c = v->at_float(i % 8);
      const double wanted = x->at_float(i) * (scales ? c : 1) + (shifts ? c : 0);
      EXPECT_NEAR(got[0]->at_float(i), wanted, 1e-6);
      EXPECT_NEAR(meaning[0]->at_float(i), wanted, 1e-6);
    }
  };
  expect("cls.affine(x, v, v)", "both", true, true);
  expect("cls.scale_only(x, v)", "scaled", true, false);
  expect("cls.shift_only(x, v)", "shifted", false, true);
}

TEST(OwnKernels, AKernelForAnotherFormSaysWhatIsLeftOut) {
  std::string text = affine("cls.shift_only(x, v)");
  text.erase(text.find("@T.prim_func\ndef shifted"),
             text.find("@R.function\ndef main") - text.find("@T.prim_func\ndef shifted"));
  const auto remarks = remarks_of(text);
  ASSERT_EQ(remarks.size(), 2u);
  EXPECT_NE(
      remarks[1].detail.find("the call leaves out `scale`; the kernel is for calls that leave "
                             "out `shift`"),
      std::string::npos)
      << remarks[1].detail;
}

std::string error_of(const std::string& text) {
  try {
    parse(text);
  } catch (const CompileError& error) {
    return fmt::format("{}: {}", error.first().code.name, error.first().message);
  }
  return "";
}

TEST(OwnKernels, IsCheckedAgainstItsOperator) {
  const auto expect = [](const std::string& text, const std::string& wanted) {
    const std::string error = error_of(text);
    EXPECT_NE(error.find(wanted), std::string::npos) << error;
  };
  expect(kernel("k", "\"op\": \"nn.sotfmax\""),
         "unknown-operator: kernel `k` is for `nn.sotfmax`, which is no operator; did you mean "
         "`nn.softmax`?");
  expect(kernel("k", "\"op\": \"a::B\""),
         "unknown-operator: kernel `k` is for `a::B`, which nothing "
         "declares");
  expect(kernel("k", "\"op\": \"matmul\""), "`matmul` has 2 tensors in");
  expect(kernel("k", "\"op\": \"relu\", \"op_when\": \"n > 1 and q > 1\""), "names `q`");
  expect(kernel("k", "\"op\": \"Conv\""), "`nn.conv");
  expect(kernel("k", "\"op\": \"relu\", \"op_atrs\": {}"), "has attribute `op_atrs`");
  expect(kernel("k", "\"op\": \"relu\", \"op_priority\": \"high\""),
         "bad-kernel: `op_priority` of kernel `k` is \"high\"; expected an integer");
  expect(kernel("k", "\"op\": \"softmax\", \"op_attrs\": {\"axes\": 1}"),
         "bad-attribute: kernel `k` pins attribute `axes`, which `nn.softmax` does not have");
  expect(kernel("k", "\"op\": \"argmax\", \"op_attrs\": {\"axis\": 1, \"keepdims\": True}"),
         "dtype-mismatch: output `y` of kernel `k` is R.Tensor((n, m), \"float32\"); `argmax` "
         "gives R.Tensor((n, 1), \"int64\")");
  expect(kernel("k", "\"op\": \"sum\", \"op_attrs\": {\"axis\": 1, \"keepdims\": False}"),
         "rank-mismatch: output `y` of kernel `k`");
}

TEST(OwnKernels, ConditionsFollowPython) {
  const graph::ExpressionNames names = {
      .values = {{"n", int64(12)}, {"axis", int64(-1)}, {"s[0]", int64(2)}}};
  const auto holds = [&](const char* text) {
    return as_int(graph::parse_condition(text, names, {})).value_or(-1);
  };
  EXPECT_EQ(holds("n % 4 == 0 and axis == -1"), 1);
  EXPECT_EQ(holds("n // 5 == 2"), 1);
  EXPECT_EQ(holds("-n // 5 == -3"), 1);
  EXPECT_EQ(holds("1 < n <= 12"), 1);
  EXPECT_EQ(holds("n < 12 < 13"), 0);
  EXPECT_EQ(holds("not n == 12 or s[0] * (n - 1) == 22"), 1);
  EXPECT_EQ(holds("True and not False"), 1);
  for (const char* bad :
       {"", "n ==", "n % 0 == 0", "(n == 12", "k == 1", "n", "n == 12 ]", "n = 12"})
    EXPECT_THROW(graph::parse_condition(bad, names, {}), CompileError) << bad;
  EXPECT_THROW(graph::parse_condition(std::string(3000, '('), names, {}), CompileError);
}

// ---- tenon check --kernels

class CheckKernelsTest : public testing::Test {
 protected:
  static std::string check(const std::string& text, int status = 1) {
    return checked(text, status);
  }
  static std::string sum(const std::string& body) {
    return "@T.prim_func\ndef my_sum(x: T.Buffer((\"n\", \"m\"), \"float32\"), y: "
           "T.Buffer((\"n\",), "
           "\"float32\")):\n    T.func_attr({\"op\": \"sum\", \"op_attrs\": {\"axis\": [1], "
           "\"keepdims\": False}})\n    n = T.int64()\n    m = T.int64()\n" +
           body;
  }
  void expect(const std::string& text, std::initializer_list<const char*> wanted) {
    const std::string said = check(text);
    for (const char* words : wanted) EXPECT_NE(said.find(words), std::string::npos) << said;
  }
};

TEST_F(CheckKernelsTest, ARightKernelPasses) {
  const std::string said = check(sum(R"(
    for i, k in T.grid(n, m):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                y[vi] = T.float32(0)
            y[vi] = y[vi] + x[vi, vk]
)") + kLeaky,
                                 0);
  EXPECT_NE(said.find("my_sum: ok, sum of 4 shapes"), std::string::npos) << said;
  EXPECT_NE(said.find("leaky: ok, ai.onnx::LeakyRelu of 4 shapes"), std::string::npos) << said;
}

TEST_F(CheckKernelsTest, FindsAWrongIndex) {
  expect(sum(R"(
    for i, k in T.grid(n, m):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                y[vi] = T.float32(0)
            y[vi] = y[vi] + x[0, vk]
)"),
         {"TN0903", "tenon_own_kernel.py:12", "for element (1) of `y`"});
}

TEST_F(CheckKernelsTest, FindsAnAccessOutside) {
  expect(sum(R"(
    for i, k in T.grid(n, m):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                y[vi] = T.float32(0)
            y[vi] = y[vi] + x[vi, vk + 1]
)"),
         {"TN0302", "tenon_own_kernel.py:12"});
}

TEST_F(CheckKernelsTest, FindsAMissingInit) {
  expect(sum(R"(
    for i, k in T.grid(n, m):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            y[vi] = y[vi] + x[vi, vk]
)"),
         {"TN0303", "element (0) of buffer `y`", "tenon_own_kernel.py:10"});
}

TEST_F(CheckKernelsTest, FindsARaceOfAParallelLoop) {
  expect(sum(R"(
    for i in T.serial(n):
        y[i] = T.float32(0)
        for k in T.parallel(m):
            y[i] = y[i] + x[i, k]
)"),
         {"TN0904", "iterations 0 and 1 of loop `k`", "tenon_own_kernel.py:10"});
}

TEST_F(CheckKernelsTest, FindsARaceOfVectorLanes) {
  expect(sum(R"(
    for i in T.parallel(n):
        y[i] = T.float32(0)
        for k in T.vectorized(m):
            y[i] = y[i] + x[i, k]
)"),
         {"TN0904", "loop `k`"});
}

TEST_F(CheckKernelsTest, ALoopThatSharesNothingIsNoRace) {
  check(sum(R"(
    for i in T.parallel(n):
        y[i] = T.float32(0)
        for k in T.serial(m):
            y[i] = y[i] + x[i, k]
)"),
        0);
}

TEST_F(CheckKernelsTest, FindsASumOverADataParallelAxis) {
  expect(sum(R"(
    for i in T.serial(n):
        with T.block("zero"):
            vi = T.axis.spatial(n, i)
            y[vi] = T.float32(0)
    for i, k in T.grid(n, m):
        with T.block("sum"):
            vi, vk = T.axis.remap("SS", [i, k])
            y[vi] = y[vi] + x[vi, vk]
)"),
         {"TN0904", "vi=0, vk=0 and for vi=0, vk=1", "T.axis.reduce"});
}

TEST_F(CheckKernelsTest, FindsElementsThatNothingWrites) {
  expect(sum(R"(
    for i in T.serial(n // 2):
        y[i] = T.float32(0)
        for k in T.serial(m):
            y[i] = y[i] + x[i, k]
)"),
         {"TN0906", "of `y`"});
}

TEST_F(CheckKernelsTest, FindsAShapeThatNeverMatches) {
  expect(R"(
@T.prim_func
def transpose(x: T.Buffer(("n", "m"), "float32"), y: T.Buffer(("n", "m"), "float32")):
    T.func_attr({"op": "permute_dims", "op_attrs": {"axes": [1, 0]}, "op_when": "n < m"})
    n = T.int64()
    m = T.int64()
    for i, j in T.grid(n, m):
        y[i, j] = x[j, i]
)",
         {"TN0905", "nearest: condition: `n < m` does not hold"});
}

// A node of ONNX is what the importer makes of it, with attributes that are drawn.
std::string hard_sigmoid(const std::string& value) {
  return R"(
@T.prim_func
def hard(x: T.Buffer(("n", "m"), "float32"), y: T.Buffer(("n", "m"), "float32"), alpha: T.float32, beta: T.float32):
    T.func_attr({"op": "HardSigmoid", "op_when": "m % 8 == 0"})
    n = T.int64()
    m = T.int64()
    for i, j in T.grid(n, m):
        with T.block("hard"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = )" +
         value + "\n";
}

TEST_F(CheckKernelsTest, ChecksNodesOfOnnx) {
  const std::string right = "T.max(T.float32(0), T.min(T.float32(1), alpha * x[vi, vj] + beta))";
  EXPECT_NE(check(hard_sigmoid(right), 0).find("hard: ok, ai.onnx::HardSigmoid of 4 shapes"),
            std::string::npos)
      << check(hard_sigmoid(right), 0);
  const std::string said =
      check(hard_sigmoid("T.max(T.float32(0), T.min(T.float32(1), beta * x[vi, vj] + alpha))"));
  EXPECT_NE(said.find("wrong, largest error"), std::string::npos) << said;
  EXPECT_NE(said.find("as `ai.onnx::HardSigmoid` of x float32 ("), std::string::npos) << said;
  const std::string unknown = check(
      "@T.prim_func\ndef k(x: T.Buffer((\"n\",), \"float32\"), y: T.Buffer((\"n\",), "
      "\"float32\")):\n    T.func_attr({\"op\": \"ai.onnx::HardSigmoids\"})\n    n = T.int64()\n   "
      " "
      "for i in range(n):\n        y[i] = x[i]\n");
  EXPECT_NE(unknown.find("`ai.onnx::HardSigmoids`, which neither the importer has nor"),
            std::string::npos)
      << unknown;
}

// A group is what its pattern says.
std::string leaky_sum(const std::string& value, const std::string& when = "leakyrelu.alpha < 2") {
  return R"(
@R.function
def leaky_sum(x: R.Tensor, b: R.Tensor(ndim=1)):
    R.func_attr({"any": True})
    s = R.add(x, b)
    y = R.nn.leakyrelu(s)
    return y

@T.prim_func
def leaky(x: T.Buffer(("n", "c", "m"), "float32"), b: T.Buffer(("c",), "float32"), y: T.Buffer(("n", "c", "m"), "float32"), alpha: T.float32):
    T.func_attr({"op": "leaky_sum", "op_when": ")" +
         when + R"("})
    n = T.int64()
    c = T.int64()
    m = T.int64()
    for i, j, k in T.grid(n, c, m):
        with T.block("leaky"):
            vi, vj, vk = T.axis.remap("SSS", [i, j, k])
            y[vi, vj, vk] = )" +
         value + "\n";
}

TEST_F(CheckKernelsTest, ChecksGroups) {
  const std::string x = "(x[vi, vj, vk] + b[vj])";
  const std::string right =
      leaky_sum("T.if_then_else(" + x + " < T.float32(0), " + x + " * alpha, " + x + ")");
  EXPECT_NE(check(right, 0).find("leaky: ok, leaky_sum of "), std::string::npos) << check(right, 0);
  const std::string said = check(leaky_sum(x + " * alpha"));
  EXPECT_NE(said.find("wrong, largest error"), std::string::npos) << said;
  const std::string mistyped = check(leaky_sum(x, "leakyrelu.alpa < 2"));
  EXPECT_NE(mistyped.find("names `leakyrelu.alpa`; it may use `alpha`"), std::string::npos)
      << mistyped;
}

TEST_F(CheckKernelsTest, FindsAWrongDType) {
  expect(R"(
@T.prim_func
def count(x: T.Buffer(("n", "m"), "float32"), y: T.Buffer(("n",), "int32")):
    T.func_attr({"op": "argmax", "op_attrs": {"axis": 1, "keepdims": False}})
    n = T.int64()
    m = T.int64()
    for i in T.serial(n):
        y[i] = 0
)",
         {"TN0102", "output `y` of kernel `count`", "int64"});
}

TEST_F(CheckKernelsTest, ChecksDeclaredOperatorsAgainstTheirBodies) {
  const std::string declared = R"(
@R.function
def twice(x: R.Tensor(("n", "m"), "float32"), factor: R.Prim("float32")) -> R.Tensor(("n", "m"), "float32"):
    R.func_attr({"op": "com.example::Scale"})
    n = T.int64()
    m = T.int64()
    scale: R.Tensor((), "float32") = R.full(R.shape([]), factor, dtype="float32")
    y: R.Tensor((n, m), "float32") = R.multiply(x, scale)
    return y

@T.prim_func
def twice_kernel(x: T.Buffer(("n", "m"), "float32"), y: T.Buffer(("n", "m"), "float32"), factor: T.float32):
    T.func_attr({"op": "com.example::Scale"})
    n = T.int64()
    m = T.int64()
    for i, j in T.grid(n, m):
        with T.block("scale"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = x[vi, vj] * )";
  const std::string said = check(declared + "factor\n", 0);
  EXPECT_NE(said.find("twice_kernel: ok, com.example::Scale of 4 shapes, largest error"),
            std::string::npos)
      << said;
  expect(declared + "T.float32(2)\n", {"TN0903", "`com.example::Scale` gives"});
}

}  // namespace
}  // namespace tenon
