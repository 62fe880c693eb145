// SPDX-License-Identifier: Apache-2.0
// Random graphs compute the same with calls in place: as graphs, as programs, and in planned
// memory.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "tenon/graph/builder.h"
#include "tenon/graph/transforms.h"
#include "tenon/interp/interpreter.h"
#include "tenon/memory/plan_module.h"
#include "tenon/tir/schedule/default_schedule.h"
#include "tenon/tir/transforms.h"

namespace tenon::graph {
namespace {

constexpr int64_t kElements = 24;

class RandomGraph {
 public:
  explicit RandomGraph(uint32_t seed) : random_(seed), builder_(module_) {}

  IRModule make_module() {
    const auto x = make<Var>("x", TensorType::of({4, 6}, kFloat32));
    const auto y = make<Var>("y", TensorType::of({24}, kFloat32));
    const auto flag = make<Var>("flag", TensorType::of({}, kBool));
    builder_.begin_function({x, y, flag});
    values_ = {x, y};
    const size_t steps = 3 + below(12);
    for (size_t i = 0; i < steps; ++i) values_.push_back(step(flag));
    std::vector<Value> results;
    for (size_t n = 1 + below(3); n > 0; --n)
      results.push_back(below(3) == 0 ? any() : values_.back());
    const Value result = results.size() == 1 ? results[0] : Value(make<Tuple>(results));
    module_.set("main", builder_.end_function(result));
    return module_;
  }

 private:
  size_t below(size_t n) { return random_() % n; }
  // Mostly what was computed last.
  Value any() {
    const size_t n = values_.size();
    return values_[below(2) == 0 ? n - 1 : below(n)];
  }
  static std::vector<int64_t> shape_of(const Value& value) {
    return *as_ints(*tensor_type(value)->shape);
  }
  Value as(const Value& value, const std::vector<int64_t>& shape) {
    if (shape_of(value) == shape) return value;
    return builder_.op("reshape", {value, make<ShapeExpr>(to_exprs(shape))});
  }
  Value unary(const Value& value) {
    static constexpr const char* kNames[] = {"nn.relu", "negative", "sin", "abs"};
    return builder_.op(kNames[below(4)], {value});
  }
  Value binary(const Value& a, const Value& b) {
    static constexpr const char* kNames[] = {"add", "subtract", "multiply", "maximum"};
    return builder_.op(kNames[below(4)], {a, as(b, shape_of(a))});
  }

  Value step(const Ref<Var>& flag) {
    const Value a = any();
    switch (below(9)) {
      case 0:
      case 1: return unary(a);
      case 2:
      case 3: return binary(a, any());
      case 4: return builder_.op("nn.softmax", {a});
      case 5: {
        static const std::vector<int64_t> kShapes[] = {{4, 6}, {6, 4}, {24}, {2, 12}, {2, 3, 4}};
        return as(a, kShapes[below(5)]);
      }
      case 6: return builder_.op("permute_dims", {as(a, {4, 6})});
      case 7: {
        const Value pair = builder_.op("split", {as(a, {24})},
                                       {{"indices_or_sections", int64_t{2}}, {"axis", int64_t{0}}});
        const Value first = builder_.emit(make<TupleGetItem>(pair, 0));
        const Value second = builder_.emit(make<TupleGetItem>(pair, 1));
        return builder_.op("concat",
                           {make<Tuple>(std::vector<Value>{binary(second, first), first})},
                           {{"axis", int64_t{0}}});
      }
      default: {
        const Value b = as(any(), shape_of(a));
        builder_.begin_branch();
        const Ref<SeqExpr> then_branch = builder_.end_branch(below(3) == 0 ? a : unary(unary(a)));
        builder_.begin_branch();
        const Ref<SeqExpr> else_branch = builder_.end_branch(binary(unary(b), a));
        return builder_.emit(make<If>(flag, then_branch, else_branch));
      }
    }
  }

  std::mt19937 random_;
  IRModule module_;
  BlockBuilder builder_;
  std::vector<Value> values_;
};

std::vector<Ref<TensorData>> run(const IRModule& module, bool flag) {
  std::vector<float> x, y;
  for (int i = 0; i < kElements; ++i) {
    x.push_back(static_cast<float>(i * 37 % 23) / 8 - 1);
    y.push_back(static_cast<float>(i * 53 % 19) / 4 - 2);
  }
  const std::vector<uint8_t> condition = {flag};
  return interp::Interpreter(module).run_main({TensorData::of<float>(kFloat32, {4, 6}, x),
                                               TensorData::of<float>(kFloat32, {24}, y),
                                               TensorData::of<uint8_t>(kBool, {}, condition)});
}

void expect_equal(const std::vector<Ref<TensorData>>& a, const std::vector<Ref<TensorData>>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t k = 0; k < a.size(); ++k) {
    ASSERT_EQ(a[k]->shape, b[k]->shape);
    for (int64_t i = 0; i < a[k]->elements(); ++i)
      ASSERT_EQ(a[k]->at_float(i), b[k]->at_float(i)) << "result " << k << ", element " << i;
  }
}

TEST(InplaceCalls, RandomGraphsComputeTheSame) {
  const char* given = std::getenv("TENON_RANDOM_GRAPHS");
  const int graphs = given ? std::atoi(given) : 100;
  int in_place = 0;
  for (int seed = 0; seed < graphs; ++seed) {
    SCOPED_TRACE(seed);
    IRModule module = legalize_ops(RandomGraph(static_cast<uint32_t>(seed)).make_module());
    if (seed % 2) module = eliminate_dead_code(fuse_tir(fuse_ops(module)));
    module.attrs.set("target", std::string("llvm -mcpu=haswell"));
    if (seed % 3) module = tir::default_schedule(module, {});
    const IRModule changed = use_inplace_calls(module);
    walk<Call>(changed.find("main"), [&](const Call& c) { in_place += c.is("call_tir_inplace"); });
    const IRModule program = lower_graph(changed);
    const IRModule planned = memory::plan_memory(program);
    for (const bool flag : {false, true}) {
      const auto expected = run(module, flag);
      expect_equal(run(changed, flag), expected);
      expect_equal(run(program, flag), expected);
      expect_equal(run(planned, flag), expected);
    }
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(in_place, graphs);
}

}  // namespace
}  // namespace tenon::graph
