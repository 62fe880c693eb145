// SPDX-License-Identifier: Apache-2.0
// Texts that use names of the program around them: values, functions of other modules, macros and
// helpers of other texts; places in the lines of a file.
#include "tenon/script/host.h"

#include <gtest/gtest.h>

#include <map>

#include "tenon/script/parser.h"
#include "tenon/script/printer.h"
#include "tenon/tir/stmt.h"

namespace tenon::script {
namespace {

using ast::Integer;

class Names final : public HostNames {
 public:
  explicit Names(std::map<std::string, Object> values) : values_(std::move(values)) {}
  const Object* find(const std::string& name) const override {
    const auto found = values_.find(name);
    return found == values_.end() ? nullptr : &found->second;
  }

 private:
  std::map<std::string, Object> values_;
};

/// An object with attributes, whose calls add numbers.
class Configuration final : public HostValue {
 public:
  explicit Configuration(std::map<std::string, Object> attributes, std::optional<Helper> text = {})
      : attributes_(std::move(attributes)), text_(std::move(text)) {}
  std::string describe() const override { return "a configuration"; }
  std::optional<Object> attribute(const std::string& name) const override {
    const auto found = attributes_.find(name);
    return found == attributes_.end() ? std::nullopt : std::optional(found->second);
  }
  std::optional<Object> item(const Object& index) const override {
    const auto* text = index.as<std::string>();
    return text ? attribute(*text) : std::nullopt;
  }
  std::optional<Object> call(const std::vector<Object>& args,
                             const Keywords& keywords) const override {
    Integer sum = 0;
    for (const Object& arg : args) {
      if (!arg.as<Integer>()) return std::nullopt;
      sum += *arg.as<Integer>();
    }
    for (const auto& [name, value] : keywords) sum += *value.as<Integer>();
    return Object(sum);
  }
  std::optional<Helper> helper() const override { return text_; }

 private:
  std::map<std::string, Object> attributes_;
  std::optional<Helper> text_;
};

std::shared_ptr<const SourceFile> file_of(const std::string& text) {
  return std::make_shared<const SourceFile>(SourceFile{"net.py", text});
}

IRModule parse(const std::string& text, std::map<std::string, Object> values,
               LineRange lines = {}) {
  const Names names(std::move(values));
  ParseOptions options;
  options.names = &names;
  options.lines = lines;
  try {
    return parse_module(file_of(text), options);
  } catch (const CompileError& error) {
    ADD_FAILURE() << error.what();
    return {};
  }
}

std::string error_of(const std::string& text, std::map<std::string, Object> values,
                     LineRange lines = {}) {
  const Names names(std::move(values));
  ParseOptions options;
  options.names = &names;
  options.lines = lines;
  try {
    parse_module(file_of(text), options);
  } catch (const CompileError& error) {
    return error.what();
  }
  return "no error";
}

void expect_same(const IRModule& a, const IRModule& b) {
  const auto difference = structural_difference(a, b);
  EXPECT_FALSE(difference) << difference->where << ": " << difference->message << "\n"
                           << print(a) << print(b);
}

std::shared_ptr<const IRModule> module_of(const std::string& text) {
  return std::make_shared<const IRModule>(parse(text, {}));
}

constexpr const char* kTwice = R"(
@I.ir_module
class Kernels:
    @T.prim_func
    def step(x: T.float32) -> T.float32:
        return x * T.float32(2)
    @T.prim_func
    def twice(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("twice"):
                vi = T.axis.spatial(4, i)
                B[vi] = cls.step(A[vi])
    @R.function
    def relu(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        y = R.nn.relu(x)
        return y
)";

TEST(HostNames, NumbersStringsTuplesAndDtypes) {
  const std::string text = R"(
@T.prim_func
def f(A: T.Buffer(shape, dtype), B: T.Buffer((rows, columns * 2), kind)):
    for i, j in T.grid(rows, shape[1]):
        B[i, j] = T.Cast(kind, A[i, j] * scale) if flag else T.Cast(kind, A[i, j])
)";
  const IRModule module = parse(text, {{"shape", make_list({Integer(4), Integer(8)}, true)},
                                       {"dtype", std::string("float32")},
                                       {"kind", kFloat64},
                                       {"rows", Integer(4)},
                                       {"columns", Integer(4)},
                                       {"scale", 0.5},
                                       {"flag", true}});
  expect_same(module, parse(R"(
@T.prim_func
def f(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float64")):
    for i, j in T.grid(4, 8):
        B[i, j] = T.Cast("float64", A[i, j] * T.float32(0.5))
)",
                            {}));
}

TEST(HostNames, ArraysAreConstants) {
  const auto data = TensorData::of<float>(kFloat32, {2, 2}, {1, 2, 3, 4});
  const std::string text = R"(
@R.function
def main(x: R.Tensor(w.shape, w.dtype)) -> R.Tensor((2, 2), "float32"):
    y = R.add(x, w)
    z = R.multiply(y, R.const(w))
    return z
)";
  const IRModule module = parse(text, {{"w", data}});
  expect_same(module, parse(R"(
@R.function
def main(x: R.Tensor((2, 2), "float32")) -> R.Tensor((2, 2), "float32"):
    y = R.add(x, R.const([[1, 2], [3, 4]], "float32"))
    z = R.multiply(y, R.const([[1, 2], [3, 4]], "float32"))
    return z
)",
                            {}));
  const IRModule element = parse(R"(
@T.prim_func
def f(A: T.Buffer((w.size,), "float32")):
    A[w.ndim] = w[1, -2]
)",
                                 {{"w", data}});
  expect_same(element, parse(R"(
@T.prim_func
def f(A: T.Buffer((4,), "float32")):
    A[2] = 3.0
)",
                             {}));
}

TEST(HostNames, AnArrayTakesTheDtypeOfItsConstant) {
  const auto data = TensorData::of<double>(kFloat64, {2}, {0.5, 1.5});
  const std::string text = R"(
@R.function
def main(x: R.Tensor((2,), "float32")):
    y = R.add(x, R.const(w, "float32"))
    return y
)";
  expect_same(parse(text, {{"w", data}}), parse(R"(
@R.function
def main(x: R.Tensor((2,), "float32")):
    y = R.add(x, R.const([0.5, 1.5], "float32"))
    return y
)",
                                                {}));
  EXPECT_NE(error_of(R"(
@R.function
def main(x: R.Tensor((2,), "int32")):
    y = R.add(x, R.const(w, "int32"))
    return y
)",
                     {{"w", data}})
                .find("element 0 of a constant of dtype float64 does not fit int32"),
            std::string::npos);
}

TEST(HostNames, AFunctionOfAnotherModuleComesWithWhatItCalls) {
  const auto kernels = module_of(kTwice);
  const IRModule module = parse(R"(
@I.ir_module
class Module:
    @T.prim_func
    def step(A: T.Buffer((4,), "float32")):
        A[0] = 1.0
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        y = R.call_tir(twice, (x,), out_sinfo=R.Tensor((4,), "float32"))
        z = R.call_tir(twice, (y,), out_sinfo=R.Tensor((4,), "float32"))
        return z
)",
                                {{"twice", CapturedFunction{kernels, "twice"}}});
  ASSERT_EQ(module.size(), 4u);
  EXPECT_EQ(module.functions()[2].first, "twice");
  EXPECT_EQ(module.functions()[3].first, "step_1");  // `step` is another function here
  EXPECT_NE(print(module).find("cls.step_1, A[vi]"), std::string::npos) << print(module);
}

TEST(HostNames, AModuleGivesItsFunctions) {
  const auto kernels = module_of(kTwice);
  const IRModule module =
      parse(R"(
@I.ir_module
class Module:
    double = twice
    @R.function
    def main(x: R.Tensor((4,), "float32")):
        y = K.relu(x)
        z = R.call_tir(cls.double, (y,), out_sinfo=R.Tensor((4,), "float32"))
        return z
)",
            {{"K", CapturedModule{kernels}}, {"twice", CapturedFunction{kernels, "twice"}}});
  EXPECT_TRUE(module.contains("double"));
  EXPECT_TRUE(module.contains("relu"));
  EXPECT_TRUE(module.contains("step"));
  EXPECT_FALSE(module.contains("twice"));
  const auto main = module.find<graph::Function>("main");
  ASSERT_TRUE(main);
  // The type of a call of a captured function is that which it declares.
  EXPECT_EQ(graph::str(main->body->blocks[0]->bindings[0]->var->type),
            "R.Tensor((4,), \"float32\")");
}

TEST(HostNames, AKernelCallsAFunctionOfAnotherModule) {
  const auto kernels = module_of(kTwice);
  const IRModule module =
      parse(R"(
@T.prim_func
def f(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    T.call_tir(twice, A, B)
    B[0] = K.step(B[1])
)",
            {{"K", CapturedModule{kernels}}, {"twice", CapturedFunction{kernels, "twice"}}});
  EXPECT_EQ(module.size(), 3u);
  EXPECT_EQ(module.functions()[0].first, "f");
}

TEST(HostNames, WhatTheModuleDefinesHidesWhatIsAround) {
  const IRModule module =
      parse(R"(
@I.ir_module
class Module:
    @R.function
    def helper(x: R.Tensor((n,), "float32")) -> R.Tensor((4,), "float32"):
        return x
    @R.function
    def main(n: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        y = helper(n)
        return y
)",
            {{"Module", Integer(1)}, {"helper", Integer(2)}, {"n", Integer(4)}});
  EXPECT_EQ(module.size(), 2u);
}

TEST(HostNames, AMacroOfAnotherTextSeesItsOwnNames) {
  const auto file = file_of(
      "\n\n@T.macro\ndef store(buffer, at, value=default):\n    buffer[at] = "
      "value * factor\n");
  const auto around = std::make_shared<Names>(
      std::map<std::string, Object>{{"factor", Integer(3)}, {"default", 2.0}});
  const Helper store = read_helper(file, {3, 5}, around);
  EXPECT_TRUE(store.is_macro);
  const IRModule module = parse(
      R"(
@T.prim_func
def f(A: T.Buffer((4,), "float32")):
    store(A, 1, factor)
    store(A, 2)
    macros.store(A, 3, 1.0)
)",
      {{"store", store},
       {"factor", 0.5},
       {"macros",
        Host{std::make_shared<Configuration>(std::map<std::string, Object>{{"store", store}})}}});
  expect_same(module, parse(R"(
@T.prim_func
def f(A: T.Buffer((4,), "float32")):
    A[1] = T.float32(0.5 * 3)
    A[2] = T.float32(2.0 * 3)
    A[3] = T.float32(3)
)",
                            {}));
}

TEST(HostNames, ValuesOfTheProgramHaveAttributesItemsAndCalls) {
  const Object configuration = Host{std::make_shared<Configuration>(
      std::map<std::string, Object>{{"rows", Integer(4)}, {"type", kFloat32}})};
  const IRModule module = parse(R"(
@T.prim_func
def f(A: T.Buffer((c.rows, c["rows"], c(1, 2, more=c.rows)), c.type)):
    A[0, 0, 0] = 0.0
)",
                                {{"c", configuration}});
  expect_same(module, parse(R"(
@T.prim_func
def f(A: T.Buffer((4, 4, 7), "float32")):
    A[0, 0, 0] = 0.0
)",
                            {}));
  EXPECT_NE(error_of("@T.prim_func\ndef f(A: T.Buffer((c.columns,), \"int8\")):\n    A[0] = 0\n",
                     {{"c", configuration}})
                .find("a configuration has no attribute `columns`"),
            std::string::npos);
}

TEST(HostNames, AFunctionThatMeetsExpressionsIsEvaluatedByReading) {
  const auto file = file_of("def affine(x, scale, bias=offset):\n    return x * scale + bias\n");
  const auto around =
      std::make_shared<Names>(std::map<std::string, Object>{{"offset", Integer(1)}});
  const Object affine = Host{std::make_shared<Configuration>(std::map<std::string, Object>{},
                                                             read_helper(file, {1, 2}, around))};
  const IRModule module = parse(R"(
@T.prim_func
def f(A: T.Buffer((affine(1, 2),), "int32")):
    A[0] = affine(A[1], 5)
)",
                                {{"affine", affine}});
  expect_same(module, parse(R"(
@T.prim_func
def f(A: T.Buffer((3,), "int32")):
    A[0] = A[1] * 5 + 1
)",
                            {}));
  const Object opaque = Host{std::make_shared<Configuration>(std::map<std::string, Object>{})};
  EXPECT_NE(error_of("@T.prim_func\ndef f(A: T.Buffer((4,), \"int32\")):\n    A[0] = g(A[1])\n",
                     {{"g", opaque}})
                .find("is called with what is known only when the program runs"),
            std::string::npos);
}

TEST(HostNames, LinesOfAFile) {
  const std::string text = R"(import numpy as np

def make(n):
    class Other:
        pass

    @I.ir_module
    class Module:
        @T.prim_func
        def f(A: T.Buffer((n,), "float32")):
            # less indented comments are no end
  # as this one
            A[0] = 1.0

    return Module
@T.prim_func
def g(A: T.Buffer((n,), "float32")):
    A[unknown] = 2.0
)";
  const IRModule module = parse(text, {{"n", Integer(3)}}, {7, 13});
  expect_same(module, parse(R"(
@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((3,), "float32")):
        A[0] = 1.0
)",
                            {}));
  EXPECT_EQ(module.find("f")->origin.str(), "net.py:10:13");
  // What is indented less ends them, and the place of an error is that in the file.
  const std::string error = error_of(text, {}, {7, 0});
  EXPECT_NE(error.find("net.py:10:28"), std::string::npos) << error;
  EXPECT_NE(error.find("`n` is not defined"), std::string::npos) << error;
  EXPECT_NE(error_of(text, {{"n", Integer(3)}}, {16, 18}).find("net.py:18:7"), std::string::npos);
  EXPECT_NE(error_of(text, {}, {1, 2}).find("no module in this file"), std::string::npos);
  EXPECT_NE(error_of(text, {}, {100, 0}).find("no module in this file"), std::string::npos);
}

}  // namespace
}  // namespace tenon::script
