// SPDX-License-Identifier: Apache-2.0
// What --validate compares, through which inputs, what it runs again, and what it refuses.
#include "tenon/driver/validate.h"

#include <gtest/gtest.h>

#include "tenon/driver/passes.h"
#include "tenon/interp/call_memo.h"
#include "tenon/script/parser.h"
#include "tenon/support/validation_codes.h"

namespace tenon {
namespace {

Pass exact(const std::string& name = "Rewritten", Attrs options = {}) {
  Pass pass;
  pass.name = name;
  pass.options = std::move(options);
  return pass;
}

enum class Verdict : uint8_t { kSame, kChanged, kNotCompared };

Verdict verdict(const IRModule& before, const IRModule& after, const Pass& pass = exact()) {
  try {
    Validator().compare(pass, before, after);
    return Verdict::kSame;
  } catch (const InternalError&) {
    return Verdict::kChanged;
  } catch (const CompileError& error) {
    EXPECT_EQ(error.first().code.id, kNotCompared.id) << error.what();
    return Verdict::kNotCompared;
  }
}

// What `compare` warns of.
std::string warning_of(const IRModule& before, const IRModule& after) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(verdict(before, after), Verdict::kSame);
  return testing::internal::GetCapturedStderr();
}

IRModule kernel(const std::string& body, const std::string& params = "") {
  return script::parse_module(
      "@I.ir_module\nclass Module:\n    @T.prim_func\n    def twice(" + params +
      "x: T.Buffer((\"n\",), \"float32\"), y: T.Buffer((\"n\",), \"float32\")):\n"
      "        n = T.int64()\n        for i in range(n):\n            " +
      body + "\n");
}

TEST(Validator, ModulesWithoutMainAreComparedFunctionByFunction) {
  const IRModule twice = kernel("y[i] = x[i] * T.float32(2)");
  EXPECT_EQ(verdict(twice, kernel("y[i] = x[i] + x[i]")), Verdict::kSame);
  EXPECT_EQ(verdict(twice, kernel("y[i] = x[i] * T.float32(3)")), Verdict::kChanged);
  const auto named = [](const std::string& value) {
    return script::parse_module(
        "@I.ir_module\nclass Module:\n    @R.function\n    def half(x: "
        "R.Tensor((3,), \"float32\")) -> R.Tensor((3,), \"float32\"):\n"
        "        with R.dataflow():\n            y = " +
        value + "\n            R.output(y)\n        return y\n");
  };
  EXPECT_EQ(verdict(named("R.add(x, x)"), named("R.multiply(x, R.const(2, \"float32\"))")),
            Verdict::kSame);
  EXPECT_EQ(verdict(named("R.add(x, x)"), named("R.multiply(x, x)")), Verdict::kChanged);
}

TEST(Validator, ScalarParametersHaveValues) {
  const std::string scalar = "s: T.float32, k: T.int64, ";
  const IRModule scaled = kernel("y[i] = x[i] * s * T.Cast(\"float32\", k)", scalar);
  EXPECT_EQ(verdict(scaled, kernel("y[i] = s * x[i] * T.Cast(\"float32\", k)", scalar)),
            Verdict::kSame);
  EXPECT_EQ(verdict(scaled, kernel("y[i] = x[i] * s", scalar)), Verdict::kChanged);
}

TEST(Validator, NamesFunctionsThatItCannotRun) {
  const std::string pointer = "p: T.handle, ";
  const std::string said =
      warning_of(kernel("y[i] = x[i]", pointer), kernel("y[i] = x[i] * x[i]", pointer));
  EXPECT_NE(said.find("warning[TN0511]"), std::string::npos) << said;
  EXPECT_NE(said.find("`twice`"), std::string::npos) << said;
}

IRModule main_of(const std::string& params, const std::string& body, const std::string& more = "") {
  return script::parse_module("@I.ir_module\nclass Module:\n    @R.function\n    def main(" +
                              params +
                              ") -> R.Tensor((\"n\", 2), \"float32\"):\n"
                              "        n = T.int64()\n"
                              "        R.func_attr({\"num_input\": 1})\n"
                              "        with R.dataflow():\n" +
                              body + "            R.output(y)\n        return y\n" + more);
}
const char* const kX = "x: R.Tensor((\"n\", 2), \"float32\")";
const char* const kW = ", w: R.Tensor((2,), \"float32\")";

TEST(Validator, FollowsLiftedParameters) {
  const IRModule before = main_of(std::string(kX) + kW,
                                  "            t = R.multiply(w, R.const(3, \"float32\"))\n"
                                  "            y = R.add(x, t)\n");
  const auto lifted = [](const std::string& factor) {
    return main_of(std::string(kX) + ", t: R.Tensor((2,), \"float32\")",
                   "            y = R.add(x, t)\n",
                   "    @R.function\n    def main_transform_params(params: R.Tuple(R.Tensor((2,), "
                   "\"float32\"))) -> R.Tuple(R.Tensor((2,), \"float32\")):\n"
                   "        with R.dataflow():\n            t = R.multiply(params[0], R.const(" +
                       factor + ", \"float32\"))\n            R.output(t)\n        return (t,)\n");
  };
  const Pass pass = exact("LiftTransformParams");
  EXPECT_EQ(verdict(before, lifted("3"), pass), Verdict::kSame);
  EXPECT_EQ(verdict(before, lifted("4"), pass), Verdict::kChanged);
  // The function of the weights is a program of its own from then on.
  EXPECT_EQ(verdict(lifted("3"), lifted("4")), Verdict::kChanged);
  EXPECT_EQ(verdict(before, find_pass("LiftTransformParams")->run(before, {}), pass),
            Verdict::kSame);
}

TEST(Validator, FollowsBoundParametersAndSizes) {
  const IRModule before = main_of(std::string(kX) + kW, "            y = R.add(x, w)\n");
  const Pass bind =
      exact("BindParams", {{"params", AttrValue::Map{{"w", AttrList{int64_t{1}, int64_t{2}}}}}});
  const IRModule bound = find_pass("BindParams")->run(before, bind.options);
  EXPECT_EQ(verdict(before, bound, bind), Verdict::kSame);
  const Pass other =
      exact("BindParams", {{"params", AttrValue::Map{{"w", AttrList{int64_t{1}, int64_t{3}}}}}});
  EXPECT_EQ(verdict(before, bound, other), Verdict::kChanged);
  // Nobody says which value the parameter had.
  EXPECT_EQ(verdict(before, bound, exact("Rewritten")), Verdict::kNotCompared);
  const Pass sizes =
      exact("BindSymbolicVars", {{"binding_map", AttrValue::Map{{"n", int64_t{5}}}}});
  const IRModule sized = find_pass("BindSymbolicVars")->run(before, sizes.options);
  EXPECT_EQ(verdict(before, sized, sizes), Verdict::kSame);
  const IRModule wrong = main_of(std::string(kX) + kW, "            y = R.subtract(x, w)\n");
  EXPECT_EQ(verdict(before, find_pass("BindSymbolicVars")->run(wrong, sizes.options), sizes),
            Verdict::kChanged);
}

TEST(Validator, RefusesOtherInputs) {
  const IRModule before = main_of(kX, "            y = R.negative(x)\n");
  EXPECT_EQ(verdict(before, script::parse_module(
                                "@R.function\ndef main(x: R.Tensor((\"n\", 2), \"float16\")):\n"
                                "    return x\n")),
            Verdict::kNotCompared);
  IRModule gone = before;
  gone.set("other", gone.find("main"));
  gone.erase("main");
  EXPECT_EQ(verdict(before, gone), Verdict::kNotCompared);
}

// A cache and what a step does with all of its rows.
IRModule growing(const std::string& product) {
  return script::parse_module(R"(@I.ir_module
class Module:
    @R.function
    def main(mask: R.Tensor(("b", "held + n"), "int64"), new: R.Tensor(("b", "n"), "float32"), past: R.Tensor(("b", "held"), "float32")):
        R.func_attr({"input_names": ["mask", "new", "past"], "output_names": ["present", "sums"]})
        b = T.int64()
        n = T.int64()
        held = T.int64()
        with R.dataflow():
            present: R.Tensor((b, held + n), "float32") = R.concat((past, new), axis=1)
            product = )" + product +
                              R"(
            sums = R.sum(product, axis=[1])
            R.output(present, sums)
        return (present, sums)
)");
}

TEST(Validator, CachesThatGrowInPlaceHaveRoom) {
  const IRModule before = growing("R.multiply(present, present)");
  Pass pass = exact("ShareBuffers", {{"pairs", AttrList{std::string("past=present")}}});
  const IRModule after = find_pass("ShareBuffers")->run(before, pass.options);
  EXPECT_EQ(verdict(before, after, pass), Verdict::kSame);
  const IRModule other =
      find_pass("ShareBuffers")->run(growing("R.add(present, present)"), pass.options);
  EXPECT_EQ(verdict(before, other, pass), Verdict::kChanged);
  Validator validator;
  validator.compare(pass, before, after);
  EXPECT_THROW(validator.compare(exact(), after, other), InternalError);
}

// Two kernels one after the other, each a loop that is worth keeping the result of.
IRModule two_kernels(const std::string& first, const std::string& second) {
  const auto function = [](const std::string& name, const std::string& value) {
    return "    @T.prim_func(private=True)\n    def " + name +
           "(x: T.Buffer((64, 64), \"float32\"), y: T.Buffer((64, 64), \"float32\")):\n"
           "        for i, j in T.grid(64, 64):\n            y[i, j] = " +
           value + "\n";
  };
  return script::parse_module(
      "@I.ir_module\nclass Module:\n" + function("f", first) + function("g", second) +
      "    @R.function\n    def main(x: R.Tensor((64, 64), \"float32\")) -> R.Tensor((64, 64), "
      "\"float32\"):\n        cls = Module\n        with R.dataflow():\n"
      "            a = R.call_tir(cls.f, (x,), R.Tensor((64, 64), \"float32\"))\n"
      "            b = R.call_tir(cls.g, (a,), R.Tensor((64, 64), \"float32\"))\n"
      "            R.output(b)\n        return b\n");
}

TEST(Validator, RunsOnlyWhatAPassChanged) {
  const std::string twice = "x[i, j] * T.float32(2)", sum = "x[i, j] + x[i, j]";
  Validator validator;
  const auto runs_of = [&](const IRModule& before, const IRModule& after) {
    const int64_t runs = validator.memo().runs();
    validator.compare(exact(), before, after);
    return validator.memo().runs() - runs;
  };
  const IRModule one = two_kernels(twice, "x[i, j] + T.float32(1)");
  // Both kernels, then the first in its other form.
  EXPECT_EQ(runs_of(one, two_kernels(sum, "x[i, j] + T.float32(1)")), 3);
  EXPECT_EQ(runs_of(two_kernels(sum, "x[i, j] + T.float32(1)"), one), 0);
  EXPECT_EQ(runs_of(one, two_kernels(twice, "T.float32(1) + x[i, j]")), 1);
  EXPECT_THROW(validator.compare(exact(), one, two_kernels(twice, "x[i, j]")), InternalError);
}

}  // namespace
}  // namespace tenon
