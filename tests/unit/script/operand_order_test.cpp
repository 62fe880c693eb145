// SPDX-License-Identifier: Apache-2.0
// The order of a composite's parameters: that of the pattern, whatever the order of the network.
#include <gtest/gtest.h>

#include "tenon/graph/backend.h"
#include "tenon/graph/partition_passes.h"
#include "tenon/ir/visit.h"
#include "tenon/script/parser.h"
#include "tenon/script/pattern_file.h"
#include "tenon/script/printer.h"

namespace tenon::graph {
namespace {

// The network's body over p, q, r (4, 4) and a pair of such.
IRModule network(const std::string& body) {
  return script::parse_module(R"(
@I.ir_module
class Module:
    @R.function
    def main(p: R.Tensor((4, 4), "float32"), q: R.Tensor((4, 4), "float32"), r: R.Tensor((4, 4), "float32"), t: R.Tuple(R.Tensor((4, 4), "float32"), R.Tensor((4, 4), "float32"))):
        with R.dataflow():
)" + body + R"(
            R.output(y)
        return y
)");
}

// What the call of the composite passes, then the names of its parameters.
std::string operands(const std::string& body, const std::string& patterns) {
  const auto read = script::read_pattern_file(patterns, {.backend = "t"});
  const IRModule module = fuse_ops_by_pattern(network(body), read.patterns, {});
  std::string passed, names, stated;
  const auto add = [](std::string& text, const std::string& name) {
    text += (text.empty() ? "" : " ") + name;
  };
  walk<Call>(module.find<Function>("main")->body, [&](const Call& call) {
    const auto* ref = call.callee.as<FuncRef>();
    if (!ref) return;
    for (const Value& argument : call.args) {
      const auto* var = argument.as<Var>();
      add(passed, var ? var->name : script::print(argument));
    }
    const auto composite = module.find<Function>(ref->name);
    for (const Ref<Var>& param : composite->params) add(names, param->name);
    for (const std::string& name :
         composite->attrs.strings(kOperandNames).value_or(std::vector<std::string>{}))
      add(stated, name);
  });
  EXPECT_TRUE(stated.empty() || stated == names) << stated;
  return passed + " as " + names + (stated.empty() ? "" : ", by name");
}

// `x - a @ b` uses a first, and x before all in the pattern.
constexpr const char* kBiasFirst = R"(
            m = R.matmul(p, q)
            y = R.subtract(r, m))";

TEST(OperandOrder, IsThatOfThePattern) {
  EXPECT_EQ(operands(kBiasFirst,
                     "y = is_op('subtract')(wildcard(), is_op('matmul')(wildcard(), wildcard()))"),
            "r p q as r p q");
}

TEST(OperandOrder, HasTheNamesOfThePattern) {
  const std::string file = R"(
a, w, b = wildcard(), wildcard(), wildcard()
y = is_op('subtract')(b, is_op('matmul')(a, w))
)";
  EXPECT_EQ(operands(kBiasFirst, file), "r p q as b a w, by name");
  EXPECT_EQ(operands(kBiasFirst, file + "patterns = [('y', y, {'left': a, 'right': w})]"),
            "r p q as b left right, by name");
  EXPECT_EQ(operands(kBiasFirst,
                     "w = wildcard()\n"
                     "y = is_op('subtract')(wildcard(), is_op('matmul')(wildcard(), w))"),
            "r p q as r p w");
}

TEST(OperandOrder, DoesNotDependOnTheOrderOfBindings) {
  const std::string file = R"(
a, b = wildcard(), wildcard()
y = is_op('subtract')(is_op('exp')(a), is_op('tanh')(b))
)";
  EXPECT_EQ(operands(R"(
            l = R.exp(p)
            m = R.tanh(q)
            y = R.subtract(l, m))",
                     file),
            "p q as a b, by name");
  EXPECT_EQ(operands(R"(
            m = R.tanh(q)
            l = R.exp(p)
            y = R.subtract(l, m))",
                     file),
            "p q as a b, by name");
}

TEST(OperandOrder, OfCommutativeOperators) {
  const std::string file = "y = is_op('add')(is_op('exp')(wildcard()), wildcard())";
  EXPECT_EQ(operands(R"(
            m = R.exp(p)
            y = R.add(q, m))",
                     file),
            "p q as p q");
  EXPECT_EQ(operands(R"(
            m = R.exp(p)
            y = R.add(m, q))",
                     file),
            "p q as p q");
}

TEST(OperandOrder, OfTheAlternativeThatIsTaken) {
  const std::string file = R"(
a, w, b = wildcard(), wildcard(), wildcard()
m = is_op('matmul')(a, w)
y = is_op('nn.relu')(is_op('subtract')(b, m) | is_op('subtract')(m, b))
)";
  EXPECT_EQ(operands(R"(
            m = R.matmul(p, q)
            s = R.subtract(r, m)
            y = R.nn.relu(s))",
                     file),
            "r p q as b a w, by name");
  EXPECT_EQ(operands(R"(
            m = R.matmul(p, q)
            s = R.subtract(m, r)
            y = R.nn.relu(s))",
                     file),
            "p q r as a w b, by name");
}

TEST(OperandOrder, WhatThePatternLeavesOpenIsInTheOrderOfTheCall) {
  EXPECT_EQ(operands(R"(
            m = R.tanh(q)
            y = R.where(R.less(p, r), m, p))",
                     "y = is_op('where')(wildcard(), varg_default_wildcard=True)"),
            "lv m p as lv m p");
  EXPECT_EQ(
      operands(R"(
            m = R.tanh(q)
            y = R.subtract(r, m))",
               "y = is_op('subtract')(wildcard(), is_op('tanh')(varg_default_wildcard=True))"),
      "r q as r q");
}

TEST(OperandOrder, OfTuples) {
  EXPECT_EQ(operands(R"(
            m = R.tanh(q)
            y = R.concat((p, m, r), axis=0))",
                     "y = is_op('concat')(wildcard())"),
            "p m r as p m r");
  EXPECT_EQ(operands(R"(
            m = R.tanh(q)
            y = R.concat((p, m), axis=0))",
                     "a, b = wildcard(), wildcard()\n"
                     "y = is_op('concat')(is_tuple([is_op('tanh')(b), a], unordered=True))"),
            "q p as b a, by name");
  EXPECT_EQ(operands(R"(
            m = R.tanh(t[1])
            y = R.subtract(p, m))",
                     "a, b = wildcard(), wildcard()\n"
                     "y = is_op('subtract')(a, is_op('tanh')(b))"),
            "p t[1] as a b, by name");
}

TEST(OperandOrder, OneValueInTwoPlacesIsOneParameter) {
  EXPECT_EQ(operands(R"(
            m = R.matmul(p, r)
            y = R.subtract(r, m))",
                     "a, w, b = wildcard(), wildcard(), wildcard()\n"
                     "y = is_op('subtract')(b, is_op('matmul')(a, w))"),
            "r p as b a, by name");
}

TEST(OperandOrder, OfNamesOfNames) {
  EXPECT_EQ(operands(R"(
            s = r
            m = R.matmul(p, q)
            y = R.subtract(s, m))",
                     "a, w, b = wildcard(), wildcard(), wildcard()\n"
                     "y = is_op('subtract')(b, is_op('matmul')(a, w))"),
            "s p q as b a w, by name");
}

TEST(OperandOrder, WithConstants) {
  EXPECT_EQ(operands(R"(
            m = R.matmul(p, R.const([[1, 2], [3, 4], [5, 6], [7, 8]], "float32"))
            y = R.subtract(R.const([9, 8], "float32"), m))",
                     "w, b = is_const(), is_const()\n"
                     "y = is_op('subtract')(b, is_op('matmul')(wildcard(), w))\n"
                     "bind_constants = False"),
            "R.const([9.0, 8.0], \"float32\") p R.const([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], "
            "[7.0, 8.0]], \"float32\") as b p w");
}

// ---- what a library's function gets -----------------------------------------------------------

// The order of the arguments of the call of `f`, whose inputs have these names.
std::string called(const std::string& inputs, const std::string& attrs = "") {
  std::string params;
  size_t start = 0;
  while (start < inputs.size()) {
    const size_t end = std::min(inputs.find(' ', start), inputs.size());
    params += inputs.substr(start, end - start) + ": T.Buffer((4, 4), \"float32\"), ";
    start = end + 1;
  }
  const auto read = script::read_pattern_file(R"(
a, w, b = wildcard(), wildcard(), wildcard()
f = is_op('subtract')(b, is_op('matmul')(a, w))
)",
                                              {.backend = "t"});
  IRModule module = fuse_ops_by_pattern(network(kBiasFirst), read.patterns, {});
  const IRModule library = script::parse_module(
      "@T.extern_func\ndef f(" + params + "y: T.Buffer((4, 4), \"float32\")):\n" +
      "    T.func_attr({\"effects\": {\"y\": \"out\"}" + attrs + "})\n");
  for (const auto& [name, function] : library.functions()) module.set(name, function);
  module = run_codegen(std::move(module), {.backend = "t"});
  std::string out;
  walk<Call>(module.find<Function>("main")->body, [&](const Call& call) {
    if (!call.is("call_dps_packed")) return;
    for (const Value& argument : call.args.at(1).as<Tuple>()->values)
      out += (out.empty() ? "" : " ") + argument.as<Var>()->name;
  });
  return out;
}

TEST(OperandOrder, LibrariesByName) {
  EXPECT_EQ(called("a w b"), "p q r");
  EXPECT_EQ(called("b a w"), "r p q");
  EXPECT_EQ(called("w b a"), "q r p");
}

TEST(OperandOrder, LibrariesByPosition) {
  EXPECT_EQ(called("x y0 z"), "r p q");
  EXPECT_EQ(called("a w bias"), "r p q");  // a name that the pattern does not have
  EXPECT_EQ(called("a w b", ", \"inputs\": [0, 2, 1]"), "r q p");
}

}  // namespace
}  // namespace tenon::graph
