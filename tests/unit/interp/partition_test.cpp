// SPDX-License-Identifier: Apache-2.0
// Partitions of random graphs: convex, without cycles, nothing lost or computed twice, and the same
// results. TENON_RANDOM_GRAPHS says how many.
#include "tenon/graph/transforms/partition.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <set>

#include "tenon/graph/backend.h"
#include "tenon/graph/builder.h"
#include "tenon/graph/partition_passes.h"
#include "tenon/graph/transforms.h"
#include "tenon/graph/verifier.h"
#include "tenon/interp/interpreter.h"
#include "tenon/support/remarks.h"

namespace tenon::graph {
namespace {

int random_graphs() {
  const char* stated = std::getenv("TENON_RANDOM_GRAPHS");
  return stated ? std::max(1, std::atoi(stated)) : 300;
}

using Random = std::mt19937;
size_t pick(Random& random, size_t count) { return random() % count; }

Ref<TensorData> tensor(int64_t rows, uint32_t seed) {
  std::vector<float> values;
  for (int64_t i = 0; i < rows * 3; ++i)
    values.push_back(static_cast<float>((seed + static_cast<uint32_t>(i) * 7) % 11) - 5.0F);
  return TensorData::of<float>(kFloat32, {rows, 3}, values);
}

/// `main` of operators whose results are exact: over (n, 3) tensors, constants that several share,
/// splits (tuples), values with many users, dead ends, branches.
class RandomGraph {
 public:
  explicit RandomGraph(uint32_t seed) : random_(seed) {}

  IRModule run() {
    IRModule module;
    BlockBuilder b(module);
    const bool is_dynamic = pick(random_, 3) == 0;
    const Expr rows = is_dynamic ? tenon::Var::size("n") : int64(2);
    std::vector<Ref<Var>> params;
    for (int i = 0; i < 3; ++i)
      params.push_back(make<Var>("x" + std::to_string(i),
                                 make<TensorType>(std::vector<Expr>{rows, int64(3)}, kFloat32)));
    const auto flag = make<Var>("flag", TensorType::of({}, kBool));
    params.push_back(flag);
    b.begin_function(params);
    std::vector<Value> pool(params.begin(), params.end() - 1);
    for (uint32_t i = 0; i < 2 && !is_dynamic; ++i) shared_.push_back(make<Constant>(tensor(2, i)));
    const bool has_branch = pick(random_, 2) == 0;
    b.begin_dataflow();
    emit(b, pool, 4 + pick(random_, 14));
    b.end_dataflow();
    if (has_branch) {
      std::vector<Ref<SeqExpr>> branches;
      for (int side = 0; side < 2; ++side) {
        std::vector<Value> inner = pool;
        b.begin_branch();
        b.begin_dataflow();
        emit(b, inner, 2 + pick(random_, 6));
        b.end_dataflow();
        branches.push_back(b.end_branch(inner.back()));
      }
      pool.push_back(b.emit(make<If>(flag, branches[0], branches[1])));
      b.begin_dataflow();
      emit(b, pool, 2 + pick(random_, 6));
      b.end_dataflow();
    }
    std::vector<Value> results = {pool.back()};
    for (size_t i = pick(random_, 3); i > 0; --i)
      results.push_back(pool[pick(random_, pool.size())]);
    module.set("main", b.end_function(results.size() == 1 ? results[0] : make<Tuple>(results)));
    return eliminate_dead_code(std::move(module));
  }

 private:
  // Near the end more often: chains are longer then.
  Value operand(const std::vector<Value>& pool) {
    if (!shared_.empty() && pick(random_, 6) == 0) return shared_[pick(random_, shared_.size())];
    const size_t back = std::min(pick(random_, pool.size()), pick(random_, pool.size()));
    return pool[pool.size() - 1 - back];
  }

  void emit(BlockBuilder& b, std::vector<Value>& pool, size_t count) {
    static constexpr const char* kUnary[] = {"nn.relu", "negative", "abs"};
    static constexpr const char* kBinary[] = {"add", "multiply", "subtract", "maximum"};
    for (size_t i = 0; i < count; ++i) {
      const size_t kind = pick(random_, 12);
      if (kind < 5) {
        pool.push_back(b.op(kUnary[pick(random_, 3)], {operand(pool)}));
      } else if (kind < 10) {
        const Value lhs = operand(pool);
        // A minimum keeps numbers small enough to stay exact.
        const Value value = b.op(kBinary[pick(random_, 4)], {lhs, operand(pool)});
        pool.push_back(b.op("clip", {value, make<PrimValue>(make<FloatImm>(kFloat32, -64.0)),
                                     make<PrimValue>(make<FloatImm>(kFloat32, 64.0))}));
      } else if (kind == 10) {
        const Value parts =
            b.op("split", {operand(pool)}, {{"indices_or_sections", 3}, {"axis", 1}});
        const Value first = b.emit(make<TupleGetItem>(parts, 0));
        pool.push_back(b.op("add", {operand(pool), first}));
        pool.push_back(b.op("maximum", {operand(pool), make<TupleGetItem>(parts, 2)}));
      } else {
        const Value pair = b.emit(make<Tuple>(std::vector<Value>{operand(pool), operand(pool)}));
        pool.push_back(
            b.op("subtract", {make<TupleGetItem>(pair, 0), make<TupleGetItem>(pair, 1)}));
      }
    }
  }

  Random random_;
  std::vector<Value> shared_;
};

Backend backend(const std::string& name, std::vector<std::pair<std::string, DFPattern>> patterns) {
  Backend out;
  out.name = name;
  for (auto& [composite, pattern] : patterns) {
    FusionPattern fusion;
    fusion.name = name + "." + composite;
    fusion.pattern = std::move(pattern);
    out.patterns.push_back(std::move(fusion));
  }
  return out;
}

// Two back ends that want some of the same.
std::vector<Backend> backends() {
  const auto unary = [](const char* op) { return is_op(op)(wildcard()); };
  const auto binary = [](const char* op) { return is_op(op)(wildcard(), wildcard()); };
  const DFPattern sum = binary("add");
  return {backend("left", {{"add_relu", is_op("nn.relu")(binary("add"))},
                           {"diamond", is_op("maximum")(is_op("negative")(sum), is_op("abs")(sum))},
                           {"add", binary("add")},
                           {"relu", unary("nn.relu")},
                           {"clip", is_op("clip").call_with_any()},
                           {"split", unary("split")}}),
          backend("right", {{"abs_negative", is_op("abs")(is_op("negative")(wildcard()))},
                            {"multiply", binary("multiply")},
                            {"add", binary("add")},
                            {"negative", unary("negative")},
                            {"abs", unary("abs")}})};
}

std::multiset<std::string> operators_of(const IRModule& module, const std::string& function) {
  std::multiset<std::string> names;
  const std::function<void(const SeqExpr&)> look = [&](const SeqExpr& seq) {
    for (const Ref<BindingBlock>& block : seq.blocks)
      for (const Ref<Binding>& binding : block->bindings) {
        if (const auto* call = binding->value.as<Call>(); call && call->op)
          names.insert(call->op->name);
        if (const auto* branch = binding->value.as<If>()) {
          look(*branch->then_branch);
          look(*branch->else_branch);
        }
      }
  };
  look(*module.find<Function>(function)->body);
  return names;
}

using Tensors = std::vector<Ref<TensorData>>;
Tensors run(const IRModule& module) {
  const std::byte yes{1};
  Tensors inputs;
  for (uint32_t i = 0; i < 3; ++i) inputs.push_back(tensor(2, 3 * i + 1));
  inputs.push_back(TensorData::owned(kBool, {}, {yes}));
  return interp::Interpreter(module).run_main(inputs);
}

void expect_same(const Tensors& a, const Tensors& b, const std::string& after) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i)
    ASSERT_EQ(a[i]->content_hash(), b[i]->content_hash()) << after << ", output " << i;
}

// Neighbouring regions of one back end that could be one.
int joinable(const IRModule& module) {
  int count = 0;
  rewrite_blocks(module.find<Function>("main"), [&](const BindingBlock& block, const auto&) {
    BlockPartition partition(module, block);
    const auto region_of = [&](size_t i) -> std::string {
      const auto* call = block.bindings[i]->value.as<Call>();
      const auto* ref = call && !call->op ? call->callee.as<FuncRef>() : nullptr;
      const auto callee = ref ? module.find<Function>(ref->name) : nullptr;
      return callee ? backend_of(*callee) : "";
    };
    for (size_t i = 0; i < block.bindings.size(); ++i)
      for (const size_t used : partition.uses(i))
        if (!region_of(i).empty() && region_of(i) == region_of(used)) {
          BlockPartition again(module, block);
          count += again.merge({used, i});
        }
    return Ref<BindingBlock>();
  });
  return count;
}

TEST(Partition, OfRandomGraphsIsLegalAndComputesTheSame) {
  const std::vector<Backend> ends = backends();
  const FuseOptions options{
      .bind_constants = true, .annotate_codegen = false, .extra_outputs = true};
  int composites = 0, several_outputs = 0;
  for (int seed = 0; seed < random_graphs(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(static_cast<uint32_t>(seed));
    const IRModule original = RandomGraph(static_cast<uint32_t>(seed)).run();
    const Tensors expected = run(original);
    const auto operators = operators_of(original, "main");
    IRModule module = original;
    const auto check_after = [&](const std::string& pass) {
      Diagnostics diagnostics;
      verify(module, diagnostics);
      ASSERT_NO_THROW(diagnostics.throw_if_any()) << pass;
      expect_same(run(module), expected, pass);
      const IRModule flat = inline_functions(module);
      ASSERT_EQ(operators_of(flat, "main"), operators) << pass;
    };
    // Either back end first, or one alone; regions in Relax's way or in Relay's.
    const size_t first = pick(random, 2);
    const size_t count = 1 + pick(random, 2);
    FuseOptions own = options;
    own.bind_constants = pick(random, 2) == 0;
    own.annotate_codegen = pick(random, 4) == 0;
    for (size_t i = 0; i < count; ++i) {
      module = fuse_ops_by_pattern(std::move(module), ends[(first + i) % 2].patterns, own);
      check_after("FuseOpsByPattern");
      if (HasFatalFailure()) return;
    }
    for (const auto& [name, function] : module.functions())
      if (const auto composite = cast<Function>(function);
          composite && composite->attrs.contains("Composite")) {
        ++composites;
        several_outputs += static_cast<bool>(composite->result.as<TupleType>());
      }
    if (pick(random, 2) == 0) {
      module = merge_composite_functions(std::move(module));
      check_after("MergeCompositeFunctions");
      if (!own.annotate_codegen) EXPECT_EQ(joinable(module), 0);
    } else {
      module = annotate_target(std::move(module), {"left", "right"});
      check_after("AnnotateTarget");
      module = merge_compiler_regions(std::move(module));
      check_after("MergeCompilerRegions");
      if (!own.annotate_codegen) EXPECT_EQ(joinable(module), 0);
      module = partition_graph(std::move(module));
      check_after("PartitionGraph");
    }
    if (HasFailure()) return;
    // Calls of library functions, which the interpreter runs by their reference bodies.
    for (const char* name : {"left", "right"}) {
      module = run_codegen(std::move(module), {.backend = name});
      Diagnostics diagnostics;
      verify(module, diagnostics);
      ASSERT_NO_THROW(diagnostics.throw_if_any());
      expect_same(run(module), expected, "RunCodegen");
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(composites, random_graphs());
  EXPECT_GT(several_outputs, 0);
}

// Merging is refused where, and only where, the groups would depend on each other in a cycle.
TEST(Partition, MergesAreRefusedExactlyWhereTheyMakeACycle) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    const auto x = make<Var>("x", TensorType::of({2}, kFloat32));
    std::vector<Ref<Binding>> bindings;
    std::vector<std::set<size_t>> uses;
    const size_t count = 3 + pick(random, 10);
    for (size_t i = 0; i < count; ++i) {
      std::vector<Value> args;
      uses.emplace_back();
      for (int k = 0; k < 2; ++k) {
        const size_t used = pick(random, i + 1);
        args.push_back(used == i ? Value(x) : Value(bindings[used]->var));
        if (used != i) uses.back().insert(used);
      }
      bindings.push_back(
          make<Binding>(make<Var>("v" + std::to_string(i), x->type, true), call_op("add", args)));
    }
    BlockPartition partition(IRModule(), BindingBlock(bindings, true));
    std::vector<size_t> group(count);
    for (size_t i = 0; i < count; ++i) group[i] = i;
    const auto has_cycle = [&](const std::vector<size_t>& groups) {
      // Takes away groups that use nothing that is left; what stays is on a cycle.
      std::set<size_t> left(groups.begin(), groups.end());
      for (bool changed = true; changed;) {
        changed = false;
        for (const size_t g : std::set<size_t>(left)) {
          bool waits = false;
          for (size_t i = 0; i < count; ++i)
            for (const size_t used : uses[i])
              waits |= groups[i] == g && groups[used] != g && left.count(groups[used]);
          if (waits) continue;
          left.erase(g);
          changed = true;
        }
      }
      return !left.empty();
    };
    for (int attempt = 0; attempt < 12; ++attempt) {
      std::vector<size_t> members;
      for (size_t i = 0; i < 2 + pick(random, 2); ++i) members.push_back(pick(random, count));
      std::vector<size_t> merged = group;
      for (size_t i = 0; i < count; ++i)
        for (const size_t member : members)
          if (group[i] == group[member]) merged[i] = group[members[0]];
      const bool legal = !has_cycle(merged);
      ASSERT_EQ(partition.merge(members), legal) << "seed " << seed;
      if (legal) group = merged;
      std::set<size_t> done;
      size_t seen = 0;
      for (const std::vector<size_t>& one : partition.groups()) {
        done.insert(one.begin(), one.end());
        seen += one.size();
        for (const size_t member : one) {
          EXPECT_EQ(group[member], group[one[0]]);
          for (const size_t used : uses[member]) ASSERT_TRUE(done.count(used)) << "seed " << seed;
        }
      }
      ASSERT_EQ(seen, count);
    }
  }
}

// ---- single cases that text cannot show: checks, attributes, annotations, priorities ------------

IRModule two_adds() {
  IRModule module;
  BlockBuilder b(module);
  const auto x = make<Var>("x", TensorType::of({2, 3}, kFloat32));
  b.begin_function({x});
  b.begin_dataflow();
  const Value sum = b.op("add", {x, make<Constant>(tensor(2, 1))}, {}, "sum");
  const Value y = b.op("nn.relu", {sum}, {}, "y");
  b.end_dataflow();
  module.set("main", b.end_function(y));
  return module;
}

std::vector<std::string> composites_of(const IRModule& module) {
  std::vector<std::string> names;
  for (const auto& [name, function] : module.functions())
    if (const auto composite = function->attrs.get<std::string>("Composite"))
      names.push_back(*composite);
  return names;
}

FusionPattern pattern_of(const std::string& name, DFPattern pattern, int priority = 0) {
  FusionPattern out;
  out.name = name;
  out.pattern = std::move(pattern);
  out.priority = priority;
  return out;
}

TEST(FuseOpsByPattern, TheLargerMatchReplacesTheOneItContains) {
  const DFPattern add = is_op("add")(wildcard(), wildcard());
  const DFPattern both = is_op("nn.relu")(is_op("add")(wildcard(), wildcard()));
  const auto fused = [&](int priority_of_add) {
    return composites_of(fuse_ops_by_pattern(
        two_adds(), {pattern_of("b.add", add, priority_of_add), pattern_of("b.add_relu", both)}));
  };
  EXPECT_EQ(fused(0), std::vector<std::string>{"b.add_relu"});
  // Unless a pattern that goes first has taken it.
  EXPECT_EQ(fused(1), std::vector<std::string>{"b.add"});
}

TEST(FuseOpsByPattern, AsksTheCheckAndTakesItsAttributes) {
  FusionPattern pattern =
      pattern_of("b.add_relu", is_op("nn.relu")(is_op("add")(wildcard(), is_const())));
  const DFPattern bias = is_const();
  const DFPattern sum = is_op("add")(wildcard(), bias);
  pattern.pattern = is_op("nn.relu")(sum);
  pattern.annotations = {{"bias", bias}, {"sum", sum}};
  int asked = 0;
  pattern.check = [&](const PatternCheck& check) {
    ++asked;
    EXPECT_TRUE(check.annotated.at("bias").as<Constant>());
    EXPECT_EQ(check.annotated.at("sum").as<Var>()->name, "sum");
    EXPECT_EQ(check.composite->attrs.get<std::string>("Composite"), "b.add_relu");
    return Verdict{};
  };
  pattern.attrs = [](const PatternCheck&) { return Attrs{{"algorithm", "direct"}}; };
  const IRModule module = fuse_ops_by_pattern(two_adds(), {pattern});
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(module.find("b_add_relu")->attrs.get<std::string>("algorithm"), "direct");
  EXPECT_TRUE(module.find<Function>("b_add_relu")->params.size() == 1);  // the constant is inside

  const IRModule lifted = fuse_ops_by_pattern(
      two_adds(), {pattern},
      {.bind_constants = false, .annotate_codegen = false, .extra_outputs = false});
  EXPECT_EQ(lifted.find<Function>("b_add_relu")->params.size(), 2U);

  pattern.check = [](const PatternCheck&) {
    return Verdict::refuse("dtype", "float32 is not for it");
  };
  const RemarkScope scope;
  EXPECT_TRUE(composites_of(fuse_ops_by_pattern(two_adds(), {pattern})).empty());
  ASSERT_FALSE(scope.remarks().empty());
  EXPECT_EQ(scope.remarks()[0].verdict, "refused");
  EXPECT_EQ(scope.remarks()[0].reason, "dtype");
}

TEST(Registry, NamesAreUniqueAndOrderedByPriority) {
  Backend low;
  low.name = "test_low";
  Backend high;
  high.name = "test_high";
  high.priority = 3;
  register_backend(low);
  register_backend(high);
  EXPECT_THROW(register_backend(low), CompileError);
  Backend dotted;
  dotted.name = "a.b";
  EXPECT_THROW(register_backend(dotted), CompileError);
  std::vector<std::string> order;
  for (const auto& one : all_backends())
    if (one->name.starts_with("test_")) order.push_back(one->name);
  EXPECT_EQ(order, (std::vector<std::string>{"test_high", "test_low"}));
  EXPECT_TRUE(unregister_backend("test_low"));
  EXPECT_FALSE(unregister_backend("test_low"));
  EXPECT_EQ(find_backend("test_low"), nullptr);
  EXPECT_TRUE(unregister_backend("test_high"));
}

TEST(Registry, PatternsOfTheUserGoToTheBackEndsThatAreThere) {
  const auto names = [] {
    std::vector<std::string> out;
    for (const FusionPattern& pattern : find_backend("test_here")->patterns)
      out.push_back(pattern.name + (pattern.is_users ? " of the user" : ""));
    return out;
  };
  using Names = std::vector<std::string>;
  Backend here;
  here.name = "test_here";
  here.patterns.push_back({.name = "test_here.own"});
  register_backend(here);
  set_user_patterns({{.name = "test_here.one"}, {.name = "test_gone.two"}});
  EXPECT_EQ(names(), (Names{"test_here.own", "test_here.one of the user"}));
  set_user_patterns({{.name = "test_here.three"}});
  EXPECT_EQ(names(), (Names{"test_here.own", "test_here.three of the user"}));
  set_user_patterns({});
  EXPECT_EQ(names(), (Names{"test_here.own"}));
  EXPECT_TRUE(unregister_backend("test_here"));
}

}  // namespace
}  // namespace tenon::graph
