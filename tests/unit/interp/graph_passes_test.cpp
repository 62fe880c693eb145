// SPDX-License-Identifier: Apache-2.0
// Graph passes keep what the interpreter computes.
#include <gtest/gtest.h>

#include <cmath>

#include "tenon/graph/builder.h"
#include "tenon/graph/transforms.h"
#include "tenon/interp/interpreter.h"
#include "tenon/memory/plan_module.h"
#include "tenon/tir/transforms.h"

namespace tenon::graph {
namespace {

Ref<TensorData> random_tensor(const std::vector<int64_t>& shape, uint32_t seed) {
  std::vector<float> values(static_cast<size_t>(checked_elements(shape)));
  uint32_t state = seed * 2654435761U + 12345U;
  for (float& value : values) {
    state = state * 1664525U + 1013904223U;
    value = static_cast<float>(state >> 8) / static_cast<float>(1 << 23) - 1.0F;
  }
  return TensorData::of<float>(kFloat32, shape, values);
}
Value constant(const std::vector<int64_t>& shape, uint32_t seed) {
  return make<Constant>(random_tensor(shape, seed));
}
Value positive_constant(const std::vector<int64_t>& shape, uint32_t seed) {
  std::vector<float> values;
  const Ref<TensorData> data = random_tensor(shape, seed);
  for (const float v : data->as_span<float>()) values.push_back(std::fabs(v) + 0.5F);
  return make<Constant>(TensorData::of<float>(kFloat32, shape, values));
}

/// Builds `main` from a function of its parameters.
template <typename F>
IRModule module_of(std::vector<Ref<Var>> params, F body) {
  IRModule module;
  BlockBuilder builder(module);
  builder.begin_function(params);
  builder.begin_dataflow();
  const Value result = body(builder);
  builder.end_dataflow();
  module.set("main", builder.end_function(result));
  return module;
}

std::vector<Ref<TensorData>> run(const IRModule& module,
                                 const std::vector<Ref<TensorData>>& inputs) {
  return interp::Interpreter(module).run_main(inputs);
}

void expect_close(const std::vector<Ref<TensorData>>& a, const std::vector<Ref<TensorData>>& b,
                  double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t k = 0; k < a.size(); ++k) {
    ASSERT_EQ(a[k]->shape, b[k]->shape);
    for (int64_t i = 0; i < a[k]->elements(); ++i)
      ASSERT_NEAR(a[k]->at_float(i), b[k]->at_float(i),
                  tolerance * (1 + std::fabs(a[k]->at_float(i))))
          << i;
  }
}

IRModule fold(IRModule module) {
  return fold_constants(std::move(module), [](const IRModule& m, const Ref<Call>& call) {
    return interp::Interpreter(m).evaluate_call(call);
  });
}

IRModule mlp() {
  const auto x = make<Var>("x", TensorType::of({4, 10}, kFloat32));
  return module_of({x}, [&](BlockBuilder& b) {
    Value y = b.op("matmul", {x, constant({10, 7}, 1)});
    y = b.op("add", {y, constant({7}, 2)});
    y = b.op("nn.relu", {y});
    y = b.op("matmul", {y, constant({7, 3}, 3)});
    y = b.op("add", {y, constant({3}, 4)});
    return b.op("nn.softmax", {y});
  });
}

IRModule cnn() {
  const auto x = make<Var>("x", TensorType::of({1, 3, 9, 9}, kFloat32));
  return module_of({x}, [&](BlockBuilder& b) {
    const Attrs pad = {{"padding", std::vector<int64_t>{1, 1}}};
    const auto norm = [&](Value y, int64_t c, uint32_t seed) {
      const Value all = b.op("nn.batch_norm",
                             {y, positive_constant({c}, seed), constant({c}, seed + 1),
                              constant({c}, seed + 2), positive_constant({c}, seed + 3)},
                             {{"training", false}});
      return b.emit(make<TupleGetItem>(all, 0));
    };
    Value y = b.op("nn.conv2d", {x, constant({20, 3, 3, 3}, 1)}, pad);
    y = b.op("nn.relu", {norm(y, 20, 10)});
    y = b.op("nn.max_pool2d", {y},
             {{"pool_size", std::vector<int64_t>{2, 2}}, {"strides", std::vector<int64_t>{2, 2}}});
    Value z = b.op("nn.conv2d", {y, constant({20, 20, 3, 3}, 2)}, pad);
    z = b.op("nn.relu", {b.op("add", {norm(z, 20, 20), y})});
    z = b.op("nn.conv2d", {z, constant({32, 20, 1, 1}, 3)});
    z = b.op("multiply", {z, b.op("sigmoid", {z})});
    z = b.op("nn.conv2d", {z, constant({32, 1, 3, 3}, 5)},
             {{"groups", int64_t{32}}, {"padding", std::vector<int64_t>{1, 1}}});
    z = b.op("mean", {z}, {{"axis", std::vector<int64_t>{2, 3}}, {"keepdims", true}});
    z = b.op("reshape", {z, make<ShapeExpr>(to_exprs({1, 32}))});
    return b.op("matmul", {z, constant({32, 5}, 7)});
  });
}

TEST(GraphPasses, LegalisingFusingAndLoweringKeepAnMlpsBits) {
  const IRModule module = mlp();
  const std::vector<Ref<TensorData>> inputs = {random_tensor({4, 10}, 99)};
  const auto expected = run(module, inputs);
  const IRModule legal = legalize_ops(module);
  expect_close(expected, run(legal, inputs), 0);
  const IRModule grouped = fuse_ops(legal);
  expect_close(expected, run(grouped, inputs), 0);
  const IRModule fused = eliminate_dead_code(fuse_tir(grouped));
  expect_close(expected, run(fused, inputs), 0);
  EXPECT_LT(fused.size(), legal.size());
  const IRModule lowered = lower_graph(fused);
  expect_close(expected, run(lowered, inputs), 0);
}

TEST(GraphPasses, BatchNormsFoldIntoConvolutions) {
  const IRModule module = cnn();
  const std::vector<Ref<TensorData>> inputs = {random_tensor({1, 3, 9, 9}, 5)};
  const auto expected = run(module, inputs);
  IRModule folded = eliminate_dead_code(fold(fold_batchnorm(module)));
  expect_close(expected, run(folded, inputs), 1e-5);
  int norms = 0;
  walk<Call>(folded.find("main"), [&](const Call& call) {
    norms += call.op && call.op->name.starts_with("nn.batch_norm");
  });
  EXPECT_EQ(norms, 0);
}

// Text has no border between them, so that a module without one would print as another.
TEST(GraphPasses, PlainBlocksThatFollowOneAnotherAreOne) {
  const auto x = make<Var>("x", TensorType::of({3}, kFloat32));
  const auto block = [&](const char* name, bool is_dataflow) {
    const auto to = make<Var>(name, x->type);
    return make<BindingBlock>(std::vector<Ref<Binding>>{make<Binding>(to, x)}, is_dataflow);
  };
  const auto all = make<SeqExpr>(
      std::vector<Ref<BindingBlock>>{block("a", false), block("b", false), block("c", true),
                                     block("d", true), block("e", false)},
      x);
  std::string bindings;
  for (const Ref<BindingBlock>& one : all->blocks) {
    bindings += one->is_dataflow ? "dataflow" : "plain";
    for (const Ref<Binding>& binding : one->bindings) bindings += " " + binding->var->name;
    bindings += "; ";
  }
  EXPECT_EQ(bindings, "plain a b; dataflow c; dataflow d; plain e; ");
}

TEST(GraphPasses, BlockedChannelsGiveTheSameResults) {
  for (const std::string target : {"llvm -mcpu=haswell", "llvm -mcpu=skylake-avx512"}) {
    IRModule module = eliminate_dead_code(fold(fold_batchnorm(cnn())));
    const std::vector<Ref<TensorData>> inputs = {random_tensor({1, 3, 9, 9}, 5)};
    const auto expected = run(module, inputs);
    module.attrs.set("target", target);
    module = eliminate_dead_code(fold(convert_layout(simplify_graph(module))));
    expect_close(expected, run(module, inputs), 1e-5);
    int blocked = 0;
    walk<Call>(module.find("main"), [&](const Call& call) {
      blocked += call.is("nn.conv2d") && call.attrs.get<std::string>("out_layout")->size() > 4;
    });
    EXPECT_EQ(blocked, 4);
    const IRModule lowered =
        lower_graph(eliminate_dead_code(fuse_tir(fuse_ops(legalize_ops(module)))));
    expect_close(expected, run(lowered, inputs), 1e-5);
  }
}

TEST(GraphPasses, AVeryLongMainIsCutInPieces) {
  const auto x = make<Var>("x", TensorType::of({3}, kFloat32));
  IRModule module = module_of({x}, [&](BlockBuilder& b) {
    Value y = x;
    for (int i = 0; i < 40; ++i)
      y = b.op(i % 2 ? "sin" : "cumsum", {y}, i % 2 ? Attrs() : Attrs{{"axis", int64_t{0}}});
    return b.op("multiply", {y, constant({3}, 1)});
  });
  const std::vector<Ref<TensorData>> inputs = {random_tensor({3}, 5)};
  const auto expected = run(module, inputs);
  module = memory::plan_memory(lower_graph(legalize_ops(module)));
  const size_t functions = module.size();
  const IRModule cut = tir::outline_main(module, 8);
  EXPECT_GT(cut.size(), functions + 4);
  expect_close(expected, run(cut, inputs), 0);
}

// Each view is one of the last: a chain as long as `main`.
TEST(GraphPasses, AMainIsCutHoweverItsDefinitionsLeadToOneAnother) {
  constexpr int kViews = 20000;
  const std::vector<Expr> shape = {int64(3)};
  const auto parameter = make<tir::Buffer>("x", kFloat32, shape);
  std::vector<tir::Stmt> body;
  Ref<tir::Buffer> last = parameter;
  for (int i = 0; i < kViews; ++i) {
    const auto view = make<tir::Buffer>("v", kFloat32, shape);
    body.push_back(make<tir::DeclBuffer>(view, last->data));
    last = view;
  }
  body.push_back(make<tir::BufferStore>(last, imm(kFloat32, 1.0), std::vector<Expr>{int64(1)}));
  IRModule module;
  module.set("main", tir::PrimFunc::of_buffers({parameter}, make<tir::Seq>(std::move(body)),
                                               {{"tenon.entry", true}}));
  const IRModule cut = tir::outline_main(module, 100);
  ASSERT_EQ(cut.size(), 2U);
  EXPECT_EQ(tir::stmts_of(cut.find<tir::PrimFunc>("main_part")->body).size(), kViews + 1U);
}

}  // namespace
}  // namespace tenon::graph
