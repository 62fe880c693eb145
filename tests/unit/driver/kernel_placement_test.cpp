// SPDX-License-Identifier: Apache-2.0
// Matches over TensorIR are chosen and counted like matches over graphs.
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "product_pattern.h"
#include "tenon/backend/plugin/plugin.h"
#include "tenon/driver/compiler.h"
#include "tenon/driver/executable.h"
#include "tenon/driver/load.h"
#include "tenon/driver/story.h"
#include "tenon/graph/backend.h"
#include "tenon/script/parser.h"
#include "tenon/support/plugin_codes.h"

namespace tenon {
namespace {

// Fused: the product and what follows it, and the two operators of `e`, which are one kernel.
constexpr const char* kModel = R"(
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((8, 16), "float32"), w: R.Tensor((16, 32), "float32"), b: R.Tensor((32,), "float32")) -> R.Tensor((8, 32), "float32"):
        with R.dataflow():
            p = R.matmul(x, w)
            y = R.add(p, b)
            z = R.nn.relu(y)
            s = R.nn.softmax(z)
            R.output(s)
        return s
)";

constexpr const char* kRelu = R"(
@T.prim_func(private=True)
def relu(a: T.handle, b: T.handle):
    m, n = T.int64(), T.int64()
    A = T.match_buffer(a, (m, n), "float32")
    B = T.match_buffer(b, (m, n), "float32")
    for i, j in T.grid(m, n):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = T.max(A[vi, vj], T.float32(0))
)";

// One of the blocks of a softmax.
constexpr const char* kRowSum = R"(
@T.prim_func(private=True)
def row_sum(a: T.handle, b: T.handle):
    m, n = T.int64(), T.int64()
    A = T.match_buffer(a, (m, n), "float32")
    B = T.match_buffer(b, (m,), "float32")
    for i, r in T.grid(m, n):
        with T.block("B"):
            vi, vr = T.axis.remap("SR", [i, r])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vr]
)";

// A convolution of what is padded already, with any strides.
constexpr const char* kConvolution = R"(
@T.prim_func(private=True)
def convolution(x: T.handle, w: T.handle, y: T.handle, down: T.int64, right: T.int64):
    n, c, h, v, o, p, q, r, s = T.int64(), T.int64(), T.int64(), T.int64(), T.int64(), T.int64(), T.int64(), T.int64(), T.int64()
    X = T.match_buffer(x, (n, c, h, v), "float32")
    W = T.match_buffer(w, (o, c, r, s), "float32")
    Y = T.match_buffer(y, (n, o, p, q), "float32")
    for a, b, d, e, k, i, j in T.grid(n, o, p, q, c, r, s):
        with T.block("Y"):
            va, vb, vd, ve, vk, vi, vj = T.axis.remap("SSSSRRR", [a, b, d, e, k, i, j])
            with T.init():
                Y[va, vb, vd, ve] = T.float32(0)
            Y[va, vb, vd, ve] = Y[va, vb, vd, ve] + X[va, vk, vd * down + vi, ve * right + vj] * W[vb, vk, vi, vj]
)";

constexpr double kUnpayable = 1;  // a second

class KernelPlacement : public testing::Test {
 protected:
  void TearDown() override {
    for (const std::string& name : names_) graph::unregister_backend(name);
  }
  graph::Backend backend(const std::string& name, const std::vector<const char*>& patterns) {
    graph::Backend made;
    made.name = name;
    for (const char* text : patterns)
      for (graph::FusionPattern& pattern : graph::read_patterns(script::parse_module(text), name))
        made.patterns.push_back(std::move(pattern));
    made.lower = [](IRModule module, const std::string& function,
                    const graph::BackendContext& context) {
      return context.lower(std::move(module), function);
    };
    return made;
  }
  void add(graph::Backend made, std::optional<double> cost = {}) {
    if (cost) made.cost = [cost](const graph::PatternCheck&) { return cost; };
    names_.push_back(made.name);
    graph::register_backend(std::move(made));
  }
  LoweredModule compile(const AttrValue::Map& place = {}, const std::string& attrs = "") {
    std::string text = kModel;
    const size_t body = text.find("        with R.dataflow");
    text.insert(body, attrs);
    IRModule module = script::parse_module(text);
    AttrList libs;
    for (const std::string& name : names_)
      if (name != "unasked") libs.emplace_back(name);
    module.attrs.set("libs", std::move(libs));
    if (!place.empty()) module.attrs.set("place", place);
    request_.target = resolve("llvm -mcpu=haswell");
    return lower(with_target(std::move(module), request_.target), request_);
  }
  std::string line(const AttrValue::Map& place = {}) { return str(compile(place).offload); }
  std::string error(const AttrValue::Map& place) {
    try {
      compile(place);
    } catch (const CompileError& error) {
      EXPECT_EQ(error.first().code.id, kBadPlacement.id);
      return error.what();
    }
    ADD_FAILURE() << "no error";
    return "";
  }

  CompileRequest request_;
  std::vector<std::string> names_;
};

TEST_F(KernelPlacement, CountsOperatorsWithTheirArithmetic) {
  add(backend("toy", {kProduct}));
  EXPECT_EQ(line(), "toy 1 of 4 operators, 100 % of the arithmetic; own code 3");
  request_.required = {{"toy", 1.0}};
  EXPECT_EQ(line(), "toy 1 of 4 operators, 100 % of the arithmetic; own code 3");
}

TEST_F(KernelPlacement, CountsWhatIsInTheMiddleOfAKernel) {
  add(backend("toy", {kRelu}));
  const LoweredModule lowered = compile();
  EXPECT_EQ(str(lowered.offload), "toy 1 of 4 operators, 0 % of the arithmetic; own code 3");
  const auto taken = std::find_if(lowered.pipeline.remarks.begin(), lowered.pipeline.remarks.end(),
                                  [](const Remark& remark) { return remark.verdict == "taken"; });
  ASSERT_NE(taken, lowered.pipeline.remarks.end());
  EXPECT_EQ(taken->reason, "toy.relu");
  EXPECT_EQ(taken->origin->line, 9U);  // of `z`
}

TEST_F(KernelPlacement, DoesNotCountAPartOfAnOperator) {
  add(backend("toy", {kRowSum}));
  const LoweredModule lowered = compile();
  EXPECT_EQ(str(lowered.offload),
            "toy 0 of 4 operators, 0 % of the arithmetic, and 1 part of others; own code 4");
  const Offload again = offload_from(nlohmann::json::parse(json_of(lowered.offload).dump()));
  EXPECT_EQ(str(again), str(lowered.offload));
}

TEST_F(KernelPlacement, RefusesWhatIsClearlyDearer) {
  add(backend("toy", {kProduct}), kUnpayable);
  const LoweredModule lowered = compile();
  EXPECT_EQ(str(lowered.offload),
            "toy 0 of 4 operators, 0 % of the arithmetic; own code 4; refused: 1 cost");
  EXPECT_EQ(json_of(lowered.offload)["refused"]["cost"], 1);
  request_.required = {{"", 0.5}};
  try {
    compile();
    ADD_FAILURE() << "no error";
  } catch (const CompileError& error) {
    ASSERT_FALSE(error.first().notes.empty());
    EXPECT_NE(error.first().notes[0].message.find("toy.product: cost: declares"), std::string::npos)
        << error.first().notes[0].message;
  }
}

TEST_F(KernelPlacement, TheHandGoesBeforeCost) {
  add(backend("toy", {kProduct, kRelu}), kUnpayable);
  EXPECT_EQ(line({{"p", "toy"}}),
            "toy 1 of 4 operators, 100 % of the arithmetic; own code 3; refused: 1 cost");
  EXPECT_EQ(line({{"z", "toy.relu"}}),
            "toy 1 of 4 operators, 0 % of the arithmetic; own code 3; refused: 1 cost");
  // In the text, by variable.
  EXPECT_EQ(str(compile({}, "        R.func_attr({\"placement\": {\"p\": \"toy\"}})\n").offload),
            "toy 1 of 4 operators, 100 % of the arithmetic; own code 3; refused: 1 cost");
  const std::string none = error({{"z", "toy.product"}});
  EXPECT_NE(none.find("no pattern of `toy.product` matches"), std::string::npos) << none;
}

TEST_F(KernelPlacement, TheHandKeepsVariablesOfScriptsToo) {
  add(backend("toy", {kProduct}));
  EXPECT_EQ(line({{"p", "none"}}), "toy 0 of 4 operators, 0 % of the arithmetic; own code 4");
}

TEST_F(KernelPlacement, WhatWasNotAskedForServesByHandOnly) {
  add(backend("toy", {kRelu}));
  add(backend("unasked", {kProduct}));
  EXPECT_EQ(line(), "toy 1 of 4 operators, 0 % of the arithmetic; own code 3");
  EXPECT_EQ(line({{"p", "unasked"}}),
            "toy 1 of 4 operators, 0 % of the arithmetic; unasked 1, 100 %; own code 2");
}

TEST_F(KernelPlacement, TheCheaperOfTwoTakesIt) {
  add(backend("one", {kProduct}), 2e-7);
  add(backend("two", {kProduct}), 1e-7);
  EXPECT_EQ(line(), "one 0 of 4 operators, 0 % of the arithmetic; two 1, 100 %; own code 3");
}

TEST_F(KernelPlacement, PriorityGoesBeforeCost) {
  graph::Backend one = backend("one", {kProduct});
  one.priority = 1;
  add(std::move(one), 2e-7);
  add(backend("two", {kProduct}), 1e-7);
  EXPECT_EQ(line(), "one 1 of 4 operators, 100 % of the arithmetic; two 0, 0 %; own code 3");
}

TEST_F(KernelPlacement, ARefusalWhenCodeIsMadeTakesTheOperatorBack) {
  graph::Backend toy = backend("toy", {kProduct});
  toy.lower = [](IRModule, const std::string&, const graph::BackendContext&) -> IRModule {
    throw graph::BackendRefusal("memory", "too much",
                                CompileError(kBackendRefused, {}, "too much memory"));
  };
  add(std::move(toy));
  EXPECT_EQ(line(), "toy 0 of 4 operators, 0 % of the arithmetic; own code 4; refused: 1 memory");
}

// Weights that own code would have packed.
class ConstantWeights : public KernelPlacement {
 protected:
  LoweredModule network(const AttrValue::Map& place = {}) {
    IRModule module = load_module(TENON_SOURCE_DIR "/examples/digits/digits.onnx");
    AttrList libs;
    for (const std::string& name : names_) libs.emplace_back(name);
    module.attrs.set("libs", std::move(libs));
    if (!place.empty()) module.attrs.set("place", place);
    request_.target = resolve("native");
    return lower(with_target(std::move(module), request_.target), request_);
  }
  static Ref<TensorData> image() {
    std::vector<float> pixels;
    for (int i = 0; i < 3 * 64; ++i) pixels.push_back(static_cast<float>(i * 7 % 17) / 16);
    return TensorData::of(kFloat32, {3, 1, 8, 8}, pixels);
  }
  std::vector<float> run(const LoweredModule& lowered) {
    const auto out = compiled(link(generate(lowered, request_)))->run({image()});
    std::vector<float> values;
    for (int64_t i = 0; i < out[0]->elements(); ++i)
      values.push_back(static_cast<float>(out[0]->at_float(i)));
    return values;
  }
  static int packed(const LoweredModule& lowered) {
    int count = 0;
    for (const Remark& remark : lowered.pipeline.remarks)
      count += remark.pass == "ConvertLayout" && remark.verdict != "planar";
    return count;
  }
};

TEST_F(ConstantWeights, StayPlainForThePatternThatTakesThem) {
  const LoweredModule own = network();
  EXPECT_EQ(packed(own), 4);
  add(backend("toy", {kConvolution, kProduct}));
  const LoweredModule taken = network();
  EXPECT_EQ(str(taken.offload), "toy 4 of 15 operators, 100 % of the arithmetic; own code 11");
  EXPECT_EQ(packed(taken), 0);
  const std::vector<float> a = run(own), b = run(taken);
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5) << i;
}

// A plugin that writes C for the convolutions: what its pattern captured it reads as attributes.
int32_t write_convolution(const TenonHost* host, const TenonMatch* match, TenonAnswer* answer) {
  const auto dim = [&](const TenonTensor* tensor, int i) { return tensor->shape[i]; };
  const TenonTensor *x = host->input(match, 0), *w = host->input(match, 1);
  const TenonTensor* y = host->output(match, 0);
  const int64_t down = host->attribute_int(match, -1, "down", 0);
  const int64_t right = host->attribute_int(match, -1, "right", 0);
  if (host->num_operators(match) != 1 || host->num_operands(match, 0) != 2 || down < 1 ||
      right < 1 || !std::strstr(host->text(match), "T.prim_func"))
    return host->refuse(answer, "attribute", "unlike what was promised");
  const std::string source = fmt::format(
      R"(#include <stdint.h>
int32_t {}(const float* x, const float* w, float* y, int64_t n) {{
  for (int64_t a = 0; a < n; ++a)
    for (int64_t b = 0; b < {o}; ++b)
      for (int64_t d = 0; d < {p}; ++d)
        for (int64_t e = 0; e < {q}; ++e) {{
          float sum = 0;
          for (int64_t k = 0; k < {c}; ++k)
            for (int64_t i = 0; i < {r}; ++i)
              for (int64_t j = 0; j < {s}; ++j)
                sum += x[((a * {c} + k) * {h} + d * {down} + i) * {v} + e * {right} + j] *
                       w[((b * {c} + k) * {r} + i) * {s} + j];
          y[((a * {o} + b) * {p} + d) * {q} + e] = sum;
        }}
  return 0;
}}
)",
      host->symbol(match), fmt::arg("o", dim(y, 1)), fmt::arg("p", dim(y, 2)),
      fmt::arg("q", dim(y, 3)), fmt::arg("c", dim(x, 1)), fmt::arg("h", dim(x, 2)),
      fmt::arg("v", dim(x, 3)), fmt::arg("r", dim(w, 2)), fmt::arg("s", dim(w, 3)),
      fmt::arg("down", down), fmt::arg("right", right));
  return host->emit(answer, TENON_C, source.c_str(), TENON_TEXT);
}

const TenonBackend* plugin_entry(const TenonHost*) {
  static TenonBackend backend;
  backend = TenonBackend();
  backend.size = sizeof(TenonBackend);
  backend.abi = TENON_BACKEND_ABI;
  backend.name = "written";
  backend.patterns = kConvolution;
  backend.flags = TENON_TAKES_SYMBOLIC_SHAPES;
  backend.generate = write_convolution;
  return &backend;
}

TEST_F(ConstantWeights, APluginTakesTheKernel) {
  const std::vector<float> a = run(network());
  add(plugin::adapt(plugin_entry, "plugin of this test"));
  const LoweredModule taken = network();
  EXPECT_EQ(taken.offload.taken[0].operators, 3);
  EXPECT_EQ(taken.library_calls, 3);
  const auto libraries = open_libraries(taken.pipeline.module, {});
  const auto out =
      compiled(link(generate(taken, request_, libraries.get()), libraries))->run({image()});
  ASSERT_EQ(out[0]->elements(), static_cast<int64_t>(a.size()));
  for (size_t i = 0; i < a.size(); ++i)
    EXPECT_NEAR(a[i], out[0]->at_float(static_cast<int64_t>(i)), 1e-5) << i;
}

TEST_F(ConstantWeights, ArePackedWhereTheMatchIsRefused) {
  add(backend("toy", {kConvolution}));
  add(backend("dear", {kProduct}), kUnpayable);
  const LoweredModule lowered = network();
  EXPECT_EQ(packed(lowered), 1);
  EXPECT_EQ(
      str(lowered.offload),
      "toy 3 of 15 operators, 99 % of the arithmetic; dear 0, 0 %; own code 12; refused: 1 cost");
}

TEST_F(ConstantWeights, ArePackedWhereTheHandKeepsThem) {
  add(backend("toy", {kConvolution, kProduct}));
  std::string first;
  for (const Remark& remark : network().pipeline.remarks)
    if (remark.pass == "AnnotatePlacement" && first.empty()) first = remark.subject;
  const LoweredModule lowered = network({{first, "none"}});
  EXPECT_EQ(packed(lowered), 1);
  EXPECT_EQ(lowered.offload.taken[0].operators, 3);
}

// The check sees what the pattern captured.
TEST_F(KernelPlacement, ChecksSeeCapturedConstants) {
  add([&] {
    graph::Backend toy = backend("toy", {R"(
@T.prim_func(private=True)
def bound(a: T.handle, b: T.handle, least: T.float32):
    m, n = T.int64(), T.int64()
    A = T.match_buffer(a, (m, n), "float32")
    B = T.match_buffer(b, (m, n), "float32")
    for i, j in T.grid(m, n):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = T.max(A[vi, vj], least)
)"});
    toy.patterns[0].check = [](const graph::PatternCheck& check) {
      return check.composite->attrs.contains("constants")
                 ? graph::Verdict::refuse("bound", "it is known")
                 : graph::Verdict();
    };
    return toy;
  }());
  EXPECT_EQ(line(), "toy 0 of 4 operators, 0 % of the arithmetic; own code 4; refused: 1 bound");
}

TEST_F(KernelPlacement, TheStoryOfANodeTellsIt) {
  add(backend("toy", {kProduct}), kUnpayable);
  const LoweredModule lowered = compile();
  Storyteller teller("p", script::parse_module(kModel));
  const std::string text = text_of(teller.finish(lowered.pipeline.remarks, request_.target).at(0));
  EXPECT_NE(text.find("own code (cost): toy.product: cost: declares"), std::string::npos) << text;
}

}  // namespace
}  // namespace tenon
