// SPDX-License-Identifier: Apache-2.0
// What lowering passes do that is too long for a text (tests/golden/tir says the rest).
#include "tenon/tir/transforms.h"

#include <gtest/gtest.h>

#include "tenon/support/remarks.h"

namespace tenon::tir {
namespace {

Ref<Buffer> buffer(const std::string& name, std::vector<Expr> shape,
                   const std::string& scope = "global") {
  return make<Buffer>(name, kFloat32, std::move(shape), Buffer::Options{.scope = scope});
}
Expr n(int64_t value) { return int64(value); }
Expr f(double value) { return imm(kFloat32, value); }
Stmt loop(const Ref<Var>& v, Expr extent, ForKind kind, Stmt body) {
  return make<For>(v, n(0), extent, kind, body);
}
Stmt store(const Ref<Buffer>& to, std::vector<Expr> indices, Expr value) {
  return make<BufferStore>(to, value, indices);
}

Ref<PrimFunc> apply(const Ref<PrimFunc>& f, std::vector<IRModule (*)(IRModule)> passes) {
  IRModule module;
  module.set("f", f);
  for (const auto pass : passes) module = pass(std::move(module));
  return module.find<PrimFunc>("f");
}

template <typename T>
int count(const NodePtr& root) {
  int found = 0;
  walk<T>(root, [&](const T&) { ++found; });
  return found;
}

// Loops of 16 in one another, all marked unrolled, around one store.
Ref<PrimFunc> nested_unrolling(int depth) {
  std::vector<Expr> shape, indices;
  std::vector<Ref<Var>> vars;
  for (int i = 0; i < depth; ++i) {
    shape.push_back(n(16));
    vars.push_back(make<Var>("i" + std::to_string(i), kInt64));
    indices.push_back(vars.back());
  }
  const auto a = buffer("A", shape);
  Stmt body = store(a, indices, f(1));
  for (size_t i = vars.size(); i-- > 0;) body = loop(vars[i], n(16), ForKind::kUnrolled, body);
  return make<PrimFunc>(std::vector<Ref<Var>>{make<Var>("a", kHandle)}, std::vector<Ref<Buffer>>{a},
                        body);
}

TEST(UnrollLoop, LoopsAroundLoopsShareTheRoom) {
  constexpr int64_t kFunctions = 4;
  for (const int depth : {2, 3, 5}) {
    IRModule module;
    for (int k = 0; k < kFunctions; ++k)
      module.set("f" + std::to_string(k), nested_unrolling(depth));
    const RemarkScope scope;
    const IRModule unrolled = unroll_loop(module);
    int64_t stores = 0, loops = 0;
    for (const auto& [name, function] : unrolled.functions())
      walk(function, [&](const NodePtr& node) {
        stores += node.as<BufferStore>() != nullptr;
        loops += node.as<For>() != nullptr;
      });
    const bool is_small = depth <= 3;
    if (is_small) EXPECT_EQ(stores, kFunctions * (depth == 2 ? 256 : 4096));
    EXPECT_LE(stores, kFunctions * 8192) << depth;
    EXPECT_EQ(loops == 0, is_small) << depth;
    EXPECT_EQ(scope.remarks().empty(), is_small) << depth;
    for (const Remark& remark : scope.remarks()) EXPECT_EQ(remark.reason, "too-large");
  }
}

// The room of a module goes to its functions in their order, whatever the threads that unroll them.
TEST(UnrollLoop, FunctionsShareTheRoomInTheirOrder) {
  constexpr int kFunctions = 120;
  IRModule module;
  for (int k = 0; k < kFunctions; ++k) module.set(fmt::format("f{:03}", k), nested_unrolling(3));
  const auto loops_in = [](const BaseFunc& function) { return count<For>(function); };
  IRModule first;
  for (int round = 0; round < 3; ++round) {
    const RemarkScope scope;
    const IRModule unrolled = unroll_loop(module);
    int before = 0;
    for (const auto& [name, function] : unrolled.functions()) {
      const int loops = loops_in(function);
      EXPECT_GE(loops, before) << name;  // who comes later has no more room
      before = loops;
    }
    EXPECT_EQ(loops_in(unrolled.functions().front().second), 0);
    EXPECT_GT(loops_in(unrolled.functions().back().second), 0);
    EXPECT_FALSE(scope.remarks().empty());
    if (round == 0) first = unrolled;
    EXPECT_TRUE(structural_equal(first, unrolled));
  }
}

// Code generators bound what may not have been, and change nothing that was.
TEST(BoundUnrolling, LeavesWhatItLeft) {
  IRModule module;
  for (int k = 0; k < 200; ++k) module.set(fmt::format("f{:03}", k), nested_unrolling(2 + k % 4));
  const IRModule once = bound_unrolling(module);
  EXPECT_FALSE(structural_equal(once, module));
  const RemarkScope scope;
  EXPECT_TRUE(structural_equal(bound_unrolling(once), once));
  EXPECT_TRUE(scope.remarks().empty());
}

// What has been bounded is copied whole, and no larger than was said.
TEST(BoundUnrolling, CopiesAreAsManyAsItSays) {
  const auto function = nested_unrolling(3);
  const auto copies = unrolled(function);
  EXPECT_EQ(count<For>(copies), 0);
  EXPECT_EQ(count<BufferStore>(copies), 4096);
  EXPECT_GE(unrolled_size(function->body), 2 * 4096);
  EXPECT_LE(count<Node>(copies->body), unrolled_size(function->body));
}

// Copies of an inner loop share what does not depend on its variable, unless each defines what it
// depends on.
TEST(BoundUnrolling, CountsOnceWhatCopiesOfInnerLoopsShare) {
  const auto fits = [](bool defines) {
    auto x = buffer("x", {n(128)}), y = buffer("y", {n(32), n(16)});
    auto i = var("i"), j = var("j");
    const auto t = make<Var>("t", kFloat32);
    Expr value = defines ? Expr(t) : load(x, {Expr(i)});
    for (int step = 0; step < 60; ++step) value = value * load(x, {Expr(i) + n(step)});
    Stmt inner = store(y, {Expr(i), Expr(j)}, value);
    if (defines) inner = seq({make<Bind>(t, load(x, {Expr(i)})), inner});
    const auto body = loop(i, n(32), ForKind::kUnrolled, loop(j, n(16), ForKind::kUnrolled, inner));
    const RemarkScope scope;
    apply(PrimFunc::of_buffers({x, y}, body), {bound_unrolling});
    return scope.remarks().empty();
  };
  EXPECT_TRUE(fits(false));
  EXPECT_FALSE(fits(true));
}

// Each copy of the loop computes one of 16 sums: all copies have 16 sums together and not 256, and no select.
TEST(BoundUnrolling, CountsTheChosenValueOfACopy) {
  for (const bool is_vector : {false, true}) {
    const auto x = buffer("x", {n(128)}), y = buffer("y", {n(16), n(8)});
    const auto i = var("i");
    const Expr lanes = is_vector ? Expr(make<Ramp>(n(0), n(1), 8)) : n(0);
    const DType dtype = kFloat32.with_lanes(is_vector ? 8 : 1);
    Expr value;
    for (int64_t row = 15; row >= 0; --row) {
      Expr sum = imm(dtype, static_cast<double>(row));
      for (int64_t term = 0; term < 100; ++term) sum = sum + load(x, {lanes + n(term)});
      Expr chosen = eq(Expr(i), n(row));
      if (is_vector) chosen = make<Broadcast>(chosen, 8);
      value = value ? select(chosen, sum, value) : sum;
    }
    const RemarkScope scope;
    const auto out = apply(PrimFunc::of_buffers({x, y}, loop(i, n(16), ForKind::kUnrolled,
                                                             store(y, {Expr(i), lanes}, value))),
                           {unroll_loop});
    EXPECT_TRUE(scope.remarks().empty());
    EXPECT_EQ(count<BufferStore>(out), 16);
    EXPECT_EQ(count<BufferLoad>(out), 1600);
    EXPECT_EQ(count<Select>(out), 0);
  }
}

// A copy of an elementary function is dozens of operations, one of a long vector several.
TEST(UnrollLoop, CountsTheWorkOfACopy) {
  const auto copies = [](const std::function<Expr(Expr)>& value) {
    auto x = buffer("x", {n(2000)}), y = buffer("y", {n(2000)});
    auto i = var("i");
    const auto out =
        apply(PrimFunc::of_buffers({x, y}, loop(i, n(1500), ForKind::kUnrolled,
                                                store(y, {Expr(i)}, value(load(x, {Expr(i)}))))),
              {unroll_loop});
    return count<BufferStore>(out);
  };
  EXPECT_EQ(copies([](Expr x) { return x + f(1); }), 1500);
  EXPECT_EQ(copies([](Expr x) { return call(IntrinsicId::kExp, {x}); }), 1);
}

TEST(Buffer, StridesOfMoreThan32Bits) {
  const auto extent = [](int64_t value) { return imm(kInt32, value); };
  const auto strides = compact_strides({extent(8), extent(65536), extent(65536)});
  EXPECT_EQ(as_int(strides[0]), int64_t{1} << 32);
  EXPECT_EQ(as_int(element_count({extent(8), extent(65536), extent(65536)})), int64_t{1} << 35);
}

}  // namespace
}  // namespace tenon::tir
