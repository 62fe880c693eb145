// SPDX-License-Identifier: Apache-2.0
// Patterns planted in random graphs are found, each once; matching takes time linear in the graph.
// TENON_PATTERN_GRAPHS=10000 sets how many graphs (200 by default).
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <random>
#include <set>

#include "tenon/graph/builder.h"
#include "tenon/graph/patterns/fusion_pattern.h"
#include "tenon/graph/patterns/rewriter.h"
#include "tenon/graph/verifier.h"

namespace tenon::graph {
namespace {

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  size_t below(size_t n) { return engine_() % n; }
  bool chance(size_t percent) { return below(100) < percent; }

 private:
  std::mt19937 engine_;
};

// What is planted: kinds, in the order of kPatterns.
enum Plant : size_t {
  kDenseBiasRelu,
  kDenseRelu,
  kDense,
  kExpTanh,
  kSquareSigmoid,
  kSplit,
  kPlants
};

std::vector<FusionPattern> patterns() {
  std::vector<FusionPattern> out;
  const auto add = [&](const char* name, DFPattern pattern) {
    FusionPattern made;
    made.name = name;
    made.pattern = std::move(pattern);
    out.push_back(std::move(made));
  };
  const DFPattern relu = is_op("nn.relu"), matmul = is_op("matmul");
  add("t.dense_bias_relu",
      relu(is_op("add")(matmul(wildcard(), wildcard()), is_var() & wildcard())));
  add("t.dense_relu", relu(matmul(wildcard(), wildcard())));
  add("t.dense", matmul(wildcard(), wildcard()));
  const DFPattern x = wildcard();
  add("t.exp_tanh", is_op("add")(is_op("exp")(x), is_op("tanh")(x)));
  const DFPattern y = wildcard();
  add("t.square_sigmoid", is_op("sigmoid")(is_op("multiply")(y, y)));
  const DFPattern split = is_op("split")(wildcard());
  add("t.split",
      is_op("concat")(is_tuple({split[0], is_op("sin")(split[1])}, TupleOrder::kUnordered)));
  return out;
}

struct Planted {
  IRModule module;
  std::vector<std::set<std::string>> roots = std::vector<std::set<std::string>>(kPlants);
};

Planted random_graph(uint32_t seed, size_t size) {
  Random random(seed);
  Planted out;
  BlockBuilder builder(out.module);
  std::vector<Ref<Var>> params;
  for (int i = 0; i < 3; ++i)
    params.push_back(make<Var>(fmt::format("x{}", i), TensorType::of({4, 4}, kFloat32)));
  builder.begin_function(params);
  builder.begin_dataflow();
  std::vector<Value> values(params.begin(), params.end());
  const auto any = [&] { return values[random.below(values.size())]; };
  const auto note = [&](Plant plant, const Value& root) {
    out.roots[plant].insert(root.as<Var>()->name);
    values.push_back(root);
  };
  const auto either_way = [&](const char* op, Value a, Value b) {
    if (random.chance(50)) std::swap(a, b);
    return builder.op(op, {a, b});
  };
  while (values.size() < size) {
    if (random.chance(60)) {
      // Neighbours, some of which look like parts of what is planted.
      static const char* const kUnary[] = {"negative", "sqrt", "nn.relu", "abs"};
      static const char* const kBinary[] = {"add", "multiply", "subtract", "maximum"};
      if (random.chance(50)) {
        values.push_back(builder.op(kUnary[random.below(4)], {any()}));
      } else {
        const Value a = any();
        Value b = any();
        values.push_back(builder.op(kBinary[random.below(4)], {a, b}));
      }
      if (random.chance(10)) {  // exp and tanh of different values are no plant
        const Value a = builder.op("exp", {params[0]}), b = builder.op("tanh", {params[1]});
        values.push_back(either_way("add", a, b));
      }
      continue;
    }
    switch (random.below(kPlants)) {
      case kDenseBiasRelu: {
        const Value bias = any();
        const Value product = builder.op("matmul", {any(), any()});
        note(kDenseBiasRelu, builder.op("nn.relu", {either_way("add", product, bias)}));
        break;
      }
      case kDenseRelu:
        note(kDenseRelu, builder.op("nn.relu", {builder.op("matmul", {any(), any()})}));
        break;
      case kDense: note(kDense, builder.op("matmul", {any(), any()})); break;
      case kExpTanh: {
        const Value a = any();
        const Value exp = builder.op("exp", {a}), tanh = builder.op("tanh", {a});
        note(kExpTanh, either_way("add", exp, tanh));
        break;
      }
      case kSquareSigmoid: {
        const Value a = any();
        note(kSquareSigmoid, builder.op("sigmoid", {builder.op("multiply", {a, a})}));
        break;
      }
      default: {
        const Value parts = builder.op("split", {any()},
                                       {{"indices_or_sections", int64_t{2}}, {"axis", int64_t{0}}});
        const Value first = builder.emit(make<TupleGetItem>(parts, 0));
        const Value second = builder.op("sin", {builder.emit(make<TupleGetItem>(parts, 1))});
        std::vector<Value> items = {first, second};
        if (random.chance(50)) std::swap(items[0], items[1]);
        note(kSplit, builder.op("concat", {make<Tuple>(std::move(items))}, {{"axis", int64_t{0}}}));
      }
    }
  }
  builder.end_dataflow();
  out.module.set("main", builder.end_function(make<Tuple>(values)));
  return out;
}

size_t number_of_graphs() {
  const char* text = std::getenv("TENON_PATTERN_GRAPHS");
  return text ? static_cast<size_t>(std::atoi(text)) : 200;
}

// What FuseOpsByPattern does: the first pattern that takes a binding has it.
std::vector<std::set<std::string>> partition(const IRModule& module, const Function& function,
                                             const std::vector<FusionPattern>& patterns) {
  const Matcher matcher(&module, function);
  std::vector<std::set<std::string>> out(patterns.size());
  std::set<const Node*> taken;
  for (const size_t i : order_of_patterns(patterns))
    for (const Ref<Binding>& root : matcher.roots(patterns[i].pattern)) {
      const auto match = matcher.match(patterns[i].pattern, root);
      if (!match || !match->escaping.empty()) continue;
      bool is_free = true;
      for (const Ref<Binding>& part : match->bindings) is_free &= !taken.count(part.get());
      if (!is_free) continue;
      EXPECT_TRUE(matcher.is_convex(match->bindings));
      for (const Ref<Binding>& part : match->bindings) taken.insert(part.get());
      out[i].insert(root->var->name);
    }
  return out;
}

TEST(Patterns, PlantedInRandomGraphsAreFound) {
  const std::vector<FusionPattern> wanted = patterns();
  for (size_t seed = 0; seed < number_of_graphs(); ++seed) {
    const Planted planted = random_graph(static_cast<uint32_t>(seed), 12 + seed % 60);
    const auto function = planted.module.find<Function>("main");
    const auto found = partition(planted.module, *function, wanted);
    for (size_t i = 0; i < kPlants; ++i)
      ASSERT_EQ(found[i], planted.roots[i]) << wanted[i].name << ", seed " << seed;
  }
}

// A composite of each planted match computes what the match did, by its text.
TEST(Patterns, CompositesOfMatchesVerify) {
  const std::vector<FusionPattern> wanted = patterns();
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const Planted planted = random_graph(seed, 30);
    const auto function = planted.module.find<Function>("main");
    const Matcher matcher(&planted.module, *function);
    IRModule module;
    for (const FusionPattern& pattern : wanted)
      for (const Ref<Binding>& root : matcher.roots(pattern.pattern)) {
        const auto match = matcher.match(pattern.pattern, root);
        if (!match) continue;
        const Composite composite = make_composite(pattern.name, *match);
        EXPECT_EQ(composite.arguments.size(), composite.function->params.size());
        EXPECT_TRUE(structural_equal(composite.function->result, root->var->type));
        module.add_unique("f", composite.function);
      }
    Diagnostics diagnostics;
    verify(module, diagnostics);
    EXPECT_TRUE(diagnostics.items().empty());
  }
}

TEST(Patterns, MatchingIsLinearInTheGraph) {
  std::vector<DFPattern> forty;
  static const char* const kRoots[] = {"nn.relu",  "add",     "multiply", "matmul", "sigmoid",
                                       "subtract", "maximum", "concat",   "sqrt",   "abs"};
  for (const char* root : kRoots)
    for (const char* inner : {"matmul", "add", "exp", "negative"}) {
      const DFPattern x = wildcard();
      const DFPattern below = is_op(inner).call_with_more({x | is_const()});
      forty.push_back(is_op(root).call_with_more({below}));
    }
  ASSERT_EQ(forty.size(), 40U);
  const auto steps = [&](size_t size, double* seconds) {
    const Planted planted = random_graph(1, size);
    const auto function = planted.module.find<Function>("main");
    const std::clock_t begun = std::clock();
    const Matcher matcher(&planted.module, *function);
    size_t found = 0;
    for (const DFPattern& pattern : forty)
      for (const Ref<Binding>& root : matcher.roots(pattern))
        found += matcher.match(pattern, root).has_value();
    *seconds = static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC;  // of this process
    EXPECT_GT(found, size / 10);
    return static_cast<double>(matcher.steps());
  };
  double seconds = 0;
  const double small = steps(2500, &seconds), large = steps(10000, &seconds);
  RecordProperty("seconds", std::to_string(seconds));
  fmt::print("40 patterns on 10000 nodes: {:.0f} steps, {:.3f} s\n", large, seconds);
  EXPECT_LT(large, 1e6);
  EXPECT_LT(large, 4.4 * small);
}

TEST(Patterns, RewritingEndsOrSaysThatItDoesNot) {
  const Planted planted = random_graph(3, 40);
  const auto function = planted.module.find<Function>("main");
  const DFPattern x = wildcard();
  const DFPattern pattern = is_op("add")(is_op("exp")(x), is_op("tanh")(x));
  const auto rewritten =
      PatternRewriter::from_pattern(pattern, [&](const Value&, const Match& match) -> Value {
        return call_op("sin", {call_op("abs", {match[x]})});
      })(function);
  const Matcher matcher(nullptr, *rewritten);
  for (const Ref<Binding>& root : matcher.roots(pattern))
    EXPECT_FALSE(matcher.match(pattern, root));
  try {
    (void)PatternRewriter::from_pattern(
        is_op("add")(wildcard(), wildcard()), [&](const Value& value, const Match&) -> Value {
          return call_op("add", {call_op("negative", {value}), value});
        })(function);
    FAIL() << "expected an error";
  } catch (const CompileError& error) {
    EXPECT_EQ(error.first().code.id, kEndlessRewrite.id);
  }
}

// A rule's condition sees each way of matching: here the operands of a sum in the other order, then
// the next rule. A rule that gives the value itself ends the search for other ways.
TEST(Patterns, AConditionIsAskedAboutEveryWayToMatch) {
  IRModule module;
  BlockBuilder builder(module);
  const auto x = make<Var>("x", TensorType::of({4, 4}, kFloat32));
  const auto y = make<Var>("y", TensorType::of({4, 4}, kFloat32));
  builder.begin_function({x, y});
  builder.begin_dataflow();
  const Value a = builder.op("add", {x, y}, {}, "a");
  const Value b = builder.op("multiply", {a, y}, {}, "b");
  builder.end_dataflow();
  const Ref<Function> function = builder.end_function(b);

  const DFPattern first = wildcard(), second = wildcard();
  int asked = 0;
  const auto sum = PatternRewriter::from_pattern(
      is_op("add")(first, second), [&](const Value&, const Match& match) -> Value {
        ++asked;
        return match[first].same_as(y) ? call_op("subtract", {match[first], match[second]})
                                       : Value();
      });
  const auto same = PatternRewriter::from_pattern(
      is_op("multiply")(first, second), [&](const Value& value, const Match&) { return value; });
  const auto product = PatternRewriter::from_pattern(
      is_op("multiply")(first, second), [&](const Value&, const Match& match) -> Value {
        return match[first].same_as(y) ? call_op("divide", {match[first], match[second]}) : Value();
      });
  const Matcher matcher(&module, *function);
  const auto rewrite = (same | sum | product).at(matcher, a);
  ASSERT_TRUE(rewrite);
  EXPECT_EQ(rewrite->rule, 1U);
  EXPECT_EQ(asked, 2);
  EXPECT_TRUE(structural_equal(rewrite->value, call_op("subtract", {y, x})));
  const Value result = function->body->body;
  const auto quotient = (same | sum | product).at(matcher, result);
  ASSERT_TRUE(quotient);
  EXPECT_EQ(quotient->rule, 2U);
  EXPECT_FALSE((same | sum).at(matcher, result));
}

TEST(Patterns, BindingsOfABlockAreReplacedTogether) {
  IRModule module;
  BlockBuilder builder(module);
  const auto x = make<Var>("x", TensorType::of({4, 4}, kFloat32));
  const auto p = make<Var>("p", TensorType::of({4, 4}, kFloat32));
  builder.begin_function({x, p});
  builder.begin_dataflow();
  const Value a = builder.op("matmul", {x, p}, {}, "a");
  const Value q = builder.op("exp", {p}, {}, "q");
  const Value b = builder.op("matmul", {x, q}, {}, "b");
  const Value c = builder.op("add", {a, b}, {}, "c");
  builder.end_dataflow();
  const Ref<Function> function = builder.end_function(c);

  const DFPattern input = wildcard(), v = wildcard(), w = wildcard();
  const DFPattern first = is_op("matmul")(input, v), second = is_op("matmul")(input, w);
  PatternContext context;
  context.add(first).add(second);
  const auto rewritten = rewrite_bindings(
      context,
      [&](const Match& match) -> std::vector<std::pair<Ref<Var>, Value>> {
        const Value both = call_op(
            "matmul",
            {match[input], call_op("concat", {make<Tuple>(std::vector<Value>{match[v], match[w]})},
                                   {{"axis", int64_t{1}}})});
        const Value parts =
            call_op("split", {both}, {{"indices_or_sections", int64_t{2}}, {"axis", int64_t{1}}});
        return {{downcast<Var>(match[first]), make<TupleGetItem>(parts, 0)},
                {downcast<Var>(match[second]), make<TupleGetItem>(parts, 1)}};
      },
      function);
  int products = 0;
  walk<Call>(rewritten->body, [&](const Call& call) { products += call.is("matmul"); });
  EXPECT_EQ(products, 1);
  IRModule checked;
  checked.set("main", rewritten);
  Diagnostics diagnostics;
  verify(checked, diagnostics);
  EXPECT_TRUE(diagnostics.items().empty());
}

}  // namespace
}  // namespace tenon::graph
