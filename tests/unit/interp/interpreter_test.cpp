// SPDX-License-Identifier: Apache-2.0
// What the interpreter says of PrimFuncs: values, and errors with their places.
#include "tenon/interp/interpreter.h"

#include <gtest/gtest.h>

#include "tenon/script/parser.h"
#include "tenon/tir/analysis/region.h"
#include "tenon/tir/schedule/schedule.h"
#include "tenon/tir/transforms.h"

namespace tenon::interp {
namespace {

using namespace tir;

Ref<TensorData> floats(const std::vector<int64_t>& shape, std::vector<float> values) {
  return TensorData::of<float>(kFloat32, shape, values);
}
std::vector<float> values_of(const Ref<TensorData>& data) {
  const auto span = data->as_span<float>();
  return {span.begin(), span.end()};
}
Ref<Buffer> buffer(const std::string& name, std::vector<Expr> shape) {
  return make<Buffer>(name, kFloat32, std::move(shape));
}
IRModule module_of(const std::string& name, Ref<PrimFunc> function) {
  IRModule module;
  module.set(name, std::move(function));
  return module;
}
Stmt store(const Ref<Buffer>& b, Expr value, std::vector<Expr> indices) {
  return make<BufferStore>(b, std::move(value), std::move(indices));
}

/// The text of the error that `f` throws.
template <typename F>
std::string error_of(F f) {
  try {
    f();
  } catch (const CompileError& error) {
    return std::string(error.first().code.id) + ": " + error.first().message;
  }
  return "nothing was thrown";
}

TEST(Interpreter, SumsRowsOfAnySize) {
  const Ref<Var> n = Var::size("n"), i = var("i"), j = var("j"), vi = var("vi"), vj = var("vj");
  const auto a = buffer("A", {n, int64(3)}), b = buffer("B", {n});
  Block::Parts parts;
  parts.name = "sum";
  parts.iter_vars = {{vi, {int64(0), n}, IterKind::kSpatial},
                     {vj, {int64(0), int64(3)}, IterKind::kReduce}};
  parts.init = store(b, imm(kFloat32, 0.0), {vi});
  parts.body = store(b, load(b, {vi}) + load(a, {vi, vj}), {vi});
  const Stmt realize =
      make<BlockRealize>(std::vector<Expr>{i, j}, boolean(true), make<Block>(std::move(parts)));
  const IRModule module =
      module_of("f", PrimFunc::of_buffers({a, b}, nest({i, j}, {n, int64(3)}, realize)));
  Interpreter interpreter(module);
  EXPECT_EQ(
      values_of(interpreter.run_prim_func("f", {floats({2, 3}, {1, 2, 3, 4, 5, 6}), nullptr})[1]),
      (std::vector<float>{6, 15}));
  EXPECT_EQ(values_of(interpreter.run_prim_func("f", {floats({1, 3}, {1, 2, 4}), nullptr})[1]),
            (std::vector<float>{7}));
}

/// b[i] = 0.5 + the sum over k of a[i, k], of any size.
IRModule row_sums() {
  const Ref<Var> n = Var::size("n"), m = Var::size("m");
  const Ref<Var> i = var("i"), k = var("k"), vi = var("vi"), vk = var("vk");
  const auto a = buffer("A", {n, m}), b = buffer("B", {n});
  Block::Parts parts;
  parts.name = "sum";
  parts.iter_vars = {{vi, {int64(0), n}, IterKind::kSpatial},
                     {vk, {int64(0), m}, IterKind::kReduce}};
  parts.init = store(b, imm(kFloat32, 0.5), {vi});
  parts.body = store(b, load(b, {vi}) + load(a, {vi, vk}), {vi});
  const Stmt sum = nest({i, k}, {n, m},
                        make<BlockRealize>(std::vector<Expr>{i, k}, boolean(true),
                                           with_accesses(make<Block>(std::move(parts)))));
  Block::Parts root;
  root.name = "root";
  root.body = sum;
  return module_of(
      "f", PrimFunc::of_buffers({a, b}, make<BlockRealize>(std::vector<Expr>{}, boolean(true),
                                                           make<Block>(std::move(root)))));
}

std::vector<float> row_sums_of(const IRModule& module, int64_t columns) {
  const std::vector<float> values(static_cast<size_t>(2 * columns), 1.0F);
  return values_of(
      Interpreter(module).run_prim_func("f", {floats({2, columns}, values), nullptr})[1]);
}

TEST(Interpreter, AReductionOverNothingGivesItsInit) {
  const IRModule module = row_sums();
  const Ref<PrimFunc> function = module.find<PrimFunc>("f");
  std::vector<IRModule> forms{module};
  {
    Schedule sch(function);  // cut, and outside the rows
    const auto loops = sch.get_loops(sch.get_block("sum"));
    const auto parts = sch.split(loops[1], 4);
    sch.reorder({parts[0], parts[1], loops[0]});
    forms.push_back(module_of("f", sch.func()));
  }
  {
    Schedule sch(function);
    const auto loops = sch.get_loops(sch.get_block("sum"));
    sch.decompose_reduction(sch.get_block("sum"), loops[1]);
    forms.push_back(module_of("f", sch.func()));
  }
  for (size_t i = 0, count = forms.size(); i < count; ++i)
    forms.push_back(lower_init_block(forms[i]));
  for (const IRModule& form : forms) {
    EXPECT_EQ(row_sums_of(form, 0), (std::vector<float>{0.5F, 0.5F}));
    EXPECT_EQ(row_sums_of(form, 5), (std::vector<float>{5.5F, 5.5F}));
  }
}

TEST(Interpreter, ReportsAnIndexOutOfRange) {
  const Ref<Var> i = var("i");
  const auto a = buffer("A", {int64(4)}), b = buffer("B", {int64(4)});
  const Stmt body = nest({i}, {int64(4)}, store(b, load(a, {i + 1}), {i}));
  Interpreter interpreter(module_of("f", PrimFunc::of_buffers({a, b}, body)));
  EXPECT_EQ(error_of([&] { interpreter.run_prim_func("f", {floats({4}, {1, 2, 3, 4}), nullptr}); }),
            "TN0302: index 4 of dimension 0 of buffer `A` lies outside of its extent 4");
}

TEST(Interpreter, ReportsAReadBeforeAWrite) {
  const Ref<Var> i = var("i");
  const auto t = buffer("T", {int64(4)}), b = buffer("B", {int64(4)});
  const Stmt body = seq({make<AllocBuffer>(t), store(t, imm(kFloat32, 1.0), {int64(0)}),
                         nest({i}, {int64(4)}, store(b, load(t, {i}), {i}))});
  Interpreter interpreter(module_of("f", PrimFunc::of_buffers({b}, body)));
  EXPECT_EQ(error_of([&] { interpreter.run_prim_func("f", {nullptr}); }),
            "TN0303: element (1) of buffer `T` is read before it is written");
}

TEST(Interpreter, GuardsEvaluateOnlyTheBranchTaken) {
  const Ref<Var> i = var("i");
  const auto a = buffer("A", {int64(3)}), b = buffer("B", {int64(5)});
  const Expr padded = if_then_else(i < int64(3), load(a, {i}), imm(kFloat32, 0.0));
  Interpreter interpreter(
      module_of("f", PrimFunc::of_buffers({a, b}, nest({i}, {int64(5)}, store(b, padded, {i})))));
  EXPECT_EQ(values_of(interpreter.run_prim_func("f", {floats({3}, {1, 2, 3}), nullptr})[1]),
            (std::vector<float>{1, 2, 3, 0, 0}));
}

TEST(Interpreter, VectorsLoadAndStoreTheirLanes) {
  const auto a = buffer("A", {int64(8)}), b = buffer("B", {int64(8)});
  const Expr evens = make<Ramp>(int64(0), int64(2), 4), first = make<Ramp>(int64(0), int64(1), 4);
  const Stmt body = seq({store(b, load(a, {evens}) * imm(kFloat32.with_lanes(4), 10.0), {first}),
                         store(b, load(a, {first}), {make<Ramp>(int64(4), int64(1), 4)})});
  Interpreter interpreter(module_of("f", PrimFunc::of_buffers({a, b}, body)));
  EXPECT_EQ(values_of(interpreter.run_prim_func(
                "f", {floats({8}, {0, 1, 2, 3, 4, 5, 6, 7}), nullptr})[1]),
            (std::vector<float>{0, 20, 40, 60, 0, 1, 2, 3}));
}

/// `twice` doubles a vector of any length and stride.
IRModule with_twice(const Ref<PrimFunc>& main) {
  const Ref<Var> n = Var::size("n"), s = Var::size("s"), i = var("i");
  const auto x = make<Buffer>("X", kFloat32, std::vector<Expr>{n}, Buffer::Options{.strides = {s}});
  const auto y = buffer("Y", {n});
  IRModule module;
  module.set("main", main);
  module.set("twice",
             PrimFunc::of_buffers(
                 {x, y}, nest({i}, {n}, store(y, load(x, {i}) * imm(kFloat32, 2.0), {i}))));
  return module;
}

TEST(Interpreter, CallsPassRegionsWithTheirStrides) {
  const auto a = buffer("A", {int64(3), int64(4)}), b = buffer("B", {int64(3)});
  // A column of A: the second dimension is dropped.
  const auto column =
      make<BufferRegion>(a, std::vector<Range>{{int64(0), int64(3)}, {int64(1), int64(1)}},
                         std::vector<bool>{false, true});
  const Stmt body =
      make<CallTir>(make<GlobalVar>("twice"), std::vector<NodePtr>{column, BufferRegion::whole(b)});
  Interpreter interpreter(with_twice(PrimFunc::of_buffers({a, b}, body)));
  EXPECT_EQ(values_of(interpreter.run_prim_func(
                "main", {floats({3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}), nullptr})[1]),
            (std::vector<float>{2, 10, 18}));
}

TEST(Interpreter, RefusesARegionThatTheCalleeDoesNotFit) {
  const auto a = buffer("A", {int64(6)}), b = buffer("B", {int64(3)});
  const Stmt body =
      make<CallTir>(make<GlobalVar>("twice"),
                    std::vector<NodePtr>{BufferRegion::whole(a), BufferRegion::whole(b)});
  Interpreter interpreter(with_twice(PrimFunc::of_buffers({a, b}, body)));
  EXPECT_EQ(error_of([&] {
              interpreter.run_prim_func("main", {floats({6}, {1, 2, 3, 4, 5, 6}), nullptr});
            }),
            "TN0101: dimension 0 of parameter `Y` is 3; declared is 6");
}

// Under `i < 0` the index `i + 1` needs no remainder; it is computed in front of the condition, and
// behind it nothing of that is known.
TEST(Interpreter, WhatHoldsUnderAConditionIsNotKnownElsewhere) {
  const Ref<Var> i = var("i"), j = var("j");
  const auto a = buffer("A", {int64(2)}), b = buffer("B", {int64(2), int64(3)});
  const auto next = [&]() -> Expr { return load(a, {floormod(Expr(i) + 1, 2)}); };
  const Expr value = if_then_else(Expr(i) < int64(0), next(), next() + imm(kFloat32, 1.0));
  const IRModule module = module_of(
      "f",
      PrimFunc::of_buffers({a, b}, nest({i, j}, {int64(2), int64(3)}, store(b, value, {i, j}))));
  Interpreter interpreter(module);
  EXPECT_EQ(values_of(interpreter.run_prim_func("f", {floats({2}, {1, 5}), nullptr})[1]),
            (std::vector<float>{6, 6, 6, 2, 2, 2}));
}

TEST(Interpreter, IntegerDivisionFollowsItsName) {
  const auto binary_of = [](BinaryOp op, int64_t a, int64_t b) {
    const auto x = make<Buffer>("X", kInt64, std::vector<Expr>{int64(2)});
    const auto y = make<Buffer>("Y", kInt64, std::vector<Expr>{int64(1)});
    const Expr value = make<Binary>(op, load(x, {int64(0)}), load(x, {int64(1)}));
    Interpreter interpreter(module_of(
        "f",
        PrimFunc::of_buffers({x, y}, make<BufferStore>(y, value, std::vector<Expr>{int64(0)}))));
    return interpreter
        .run_prim_func("f", {TensorData::of<int64_t>(kInt64, {2}, {a, b}), nullptr})[1]
        ->at_int(0);
  };
  EXPECT_EQ(binary_of(BinaryOp::kDiv, -7, 2), -3);
  EXPECT_EQ(binary_of(BinaryOp::kMod, -7, 2), -1);
  EXPECT_EQ(binary_of(BinaryOp::kFloorDiv, -7, 2), -4);
  EXPECT_EQ(binary_of(BinaryOp::kFloorMod, -7, 2), 1);
  EXPECT_EQ(binary_of(BinaryOp::kFloorMod, 7, -2), -1);
  EXPECT_EQ(error_of([&] { binary_of(BinaryOp::kFloorDiv, 1, 0); }), "TN0602: division by zero");
}

TEST(Interpreter, AssertionsStopTheProgram) {
  const auto a = buffer("A", {int64(1)});
  const Stmt body =
      make<Assert>(load(a, {int64(0)}) > imm(kFloat32, 0.0), "`take`: index out of range");
  Interpreter interpreter(module_of("f", PrimFunc::of_buffers({a}, body)));
  EXPECT_EQ(error_of([&] { interpreter.run_prim_func("f", {floats({1}, {-1})}); }),
            "TN0602: `take`: index out of range");
  EXPECT_EQ(error_of([&] { interpreter.run_prim_func("f", {floats({1}, {1})}); }),
            "nothing was thrown");
}

TEST(Interpreter, AnInputThatIsLeftOutIsNone) {
  const auto result = [](const std::string& bias) {
    return values_of(
        Interpreter(
            script::parse_module("@R.function\n"
                                 "def main(x: R.Tensor((2, 1, 1), \"float32\"), w: R.Tensor((1, "
                                 "1, 1), \"float32\"), b: R.Tensor((1, 2), \"float32\")):\n"
                                 "    y = R.nn.rnn(x, w, w, " +
                                 bias +
                                 ", R.const([[[0.5]]], \"float32\"), hidden_size=1)\n"
                                 "    return y[0]\n"))
            .run_main({floats({2, 1, 1}, {1, 2}), floats({1, 1, 1}, {3}), floats({1, 2}, {0, 0})})
            .at(0));
  };
  EXPECT_EQ(result("None"), result("b"));
}

}  // namespace
}  // namespace tenon::interp
