// SPDX-License-Identifier: Apache-2.0
// blockize, transform_layout, pad_einsum and decompose_padding: what each does, and what it
// refuses.
#include <gtest/gtest.h>

#include "schedule_evaluate.h"
#include "schedule_kernels.h"
#include "tenon/ir/module.h"
#include "tenon/support/diagnostics.h"
#include "tenon/tir/analysis/verifier.h"
#include "tenon/tir/schedule/schedule.h"

namespace tenon::tir {
namespace {

using testing::compute;
using testing::dense;
using testing::dump;
using testing::function;
using testing::results;
using testing::tensor;

/// The scheduled function is well formed, its trace replays, and it computes what it did before.
void expect_same(const PrimFunc& before, const Schedule& sch, const testing::Env& symbols = {}) {
  IRModule module;
  module.set("main", sch.func());
  Diagnostics diagnostics;
  verify(module, diagnostics);
  ASSERT_TRUE(diagnostics.empty()) << render(diagnostics.items()[0]) << "\n" << dump(*sch.func());
  const auto a = results(before, symbols);
  std::vector<std::vector<double>> b;
  try {
    b = results(*sch.func(), symbols);
  } catch (const std::exception& error) {
    FAIL() << error.what() << "\n" << dump(*sch.func());
  }
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t k = 0; k < a[i].size(); ++k)
      ASSERT_NEAR(a[i][k], b[i][k], 1e-9) << "element " << k << "\n" << dump(*sch.func());
  const Schedule again = replay(sch.trace(), ref_to(&before));
  EXPECT_TRUE(structural_equal(sch.func(), again.func())) << sch.trace().str();
}

std::string refusal(const std::function<void()>& f) {
  try {
    f();
  } catch (const CompileError& error) {
    EXPECT_EQ(error.first().code.id, kScheduleIllegal.id);
    return error.first().message;
  }
  return "accepted";
}

// ---- blockize

TEST(Blockize, DividesAxesBetweenOutsideAndInside) {
  const auto f = dense(int64(8), 12, 6, 6, true);
  Schedule sch(f);
  const auto loops = sch.get_loops(sch.get_block("matmul"));
  const auto i = sch.split(loops[0], 4), j = sch.split(loops[1], 3), k = sch.split(loops[2], 2);
  sch.reorder({i[0], j[0], k[0], i[1], j[1], k[1]});
  const BlockRV outer = sch.blockize(i[1]);
  EXPECT_EQ(outer.name, "matmul_o");
  const Ref<Block> block = sch.get(outer);
  ASSERT_EQ(block->iter_vars.size(), 3u);
  EXPECT_EQ(as_int(block->iter_vars[1].domain.extent), 4);
  EXPECT_EQ(block->iter_vars[2].kind, IterKind::kReduce);
  EXPECT_TRUE(block->init);  // the reduction is outside as well: it starts there
  EXPECT_FALSE(sch.get(BlockRV{"matmul"})->init);
  // Regions of the new block are what one run of it touches.
  EXPECT_EQ(as_int(block->writes.at(0)->region.at(0).extent), 4);
  EXPECT_EQ(as_int(block->writes.at(0)->region.at(1).extent), 3);
  expect_same(*f, sch);
  // The new block is split, reordered and run in parallel like any other.
  const auto outside = sch.get_loops(outer);
  sch.reorder({outside[1], outside[0]});
  sch.parallel(outside[1]);
  EXPECT_EQ(refusal([&] { sch.parallel(outside[2]); }),
            "loop `i2_0` carries axis `v2_o` of block `matmul_o`, which is no spatial one; it "
            "cannot be parallel");
  sch.decompose_reduction(outer, outside[2]);
  expect_same(*f, sch);
}

TEST(Blockize, KeepsAStartThatIsInside) {
  const auto f = dense(int64(4), 6, 5, 6, true);
  Schedule sch(f);
  const auto loops = sch.get_loops(sch.get_block("matmul"));
  const BlockRV outer = sch.blockize(loops[1]);
  EXPECT_FALSE(sch.get(outer)->init);
  EXPECT_TRUE(sch.get(BlockRV{"matmul"})->init);
  EXPECT_EQ(sch.get(outer)->iter_vars.size(), 1u);
  expect_same(*f, sch);
}

TEST(Blockize, CarriesAPredicateInside) {
  const auto f = dense(int64(7), 6, 5, 6, true);
  Schedule sch(f);
  const auto loops = sch.get_loops(sch.get_block("matmul"));
  const auto i = sch.split(loops[0], 2), k = sch.split(loops[2], 3);
  sch.reorder({i[0], k[0], i[1], loops[1], k[1]});
  sch.blockize(i[1]);
  EXPECT_FALSE(is_int(sch.realize(BlockRV{"matmul"})->predicate, 1));
  expect_same(*f, sch);
}

TEST(Blockize, RefusesWhatIsNoWhole) {
  const auto f = dense(int64(4), 6, 5, 6);
  {
    Schedule sch(f);
    const auto loops = sch.get_loops(sch.get_block("matmul"));
    sch.reverse_compute_at(sch.get_block("add"), loops[0]);
    EXPECT_EQ(refusal([&] { sch.blockize(loops[0]); }),
              "loop `i0` holds 2 blocks; expected loops around one");
  }
  // out[i, j] of a[3 * i0 + i1] over i1 < 2: places overlap with nothing, but leave gaps.
  const auto a = tensor("a", std::vector<int64_t>{12}),
             out = tensor("out", std::vector<int64_t>{12});
  const auto g =
      function({a, out}, {},
               {compute("copy", out, {int64(12)}, [&](const auto& v) { return load(a, {v[0]}); })});
  Schedule sch(g);
  const auto loop = sch.get_loops(sch.get_block("copy"))[0];
  const auto parts = sch.split(loop, {int64(2), int64(2), int64(3)});
  sch.reorder({parts[0], parts[2], parts[1]});
  EXPECT_EQ(refusal([&] { sch.blockize(parts[1]); }),
            "axis `v0` of block `copy` is bound to i0_0 * 6 + i0_1 * 3 + i0_2; expected a multiple "
            "from outside the new block plus a smaller part from inside");
  const BlockRV outer = sch.blockize(parts[2]);
  EXPECT_EQ(refusal([&] { sch.cache_read(BlockRV{"copy"}, 0, "local"); }),
            "block `copy` is inside block `copy_o`; expected it directly below the root block");
  expect_same(*g, sch);
  EXPECT_EQ(sch.get_loops(outer).size(), 1u);
}

TEST(Blockize, TakesProducersAndConsumersAsAWhole) {
  const auto f = dense(int64(8), 6, 5, 6);
  Schedule sch(f);
  sch.compute_inline(sch.get_block("add"));
  const auto loops = sch.get_loops(sch.get_block("relu"));
  const auto i = sch.split(loops[0], 4);
  const BlockRV outer = sch.blockize(i[1]);
  sch.compute_at(sch.get_block("matmul"), i[0]);  // four rows at a time
  EXPECT_EQ(as_int(sch.get(sch.get_loops(sch.get_block("matmul"))[1])->extent), 4);
  EXPECT_TRUE(sch.has_block(outer.name));
  expect_same(*f, sch);
}

TEST(ComputeInline, ReachesIntoBlocksInsideBlocks) {
  const auto f = dense(int64(8), 6, 5, 6);
  Schedule sch(f);
  const auto loops = sch.get_loops(sch.get_block("relu"));
  sch.blockize(loops[1]);
  sch.compute_inline(sch.get_block("add"));
  expect_same(*f, sch);
}

// ---- transform_layout

IndexMap map2(const std::function<std::vector<Expr>(Expr, Expr)>& to) {
  const Ref<Var> i = var("i"), j = var("j");
  return {{i, j}, to(i, j)};
}

TEST(TransformLayout, MovesEveryAccess) {
  const auto f = dense(int64(8), 12, 6, 6);
  Schedule sch(f);
  const IndexMap tiled = map2([](const Expr& i, const Expr& j) -> std::vector<Expr> {
    return {floordiv(j, 4), i, floormod(j, 4)};
  });
  sch.transform_layout(sch.get_block("matmul"), BufferRole::kWrite, 0, tiled);
  const Ref<Buffer> moved = sch.get(BlockRV{"matmul"})->writes.at(0)->buffer;
  EXPECT_EQ(as_ints(moved->shape), (std::vector<int64_t>{3, 8, 4}));
  EXPECT_TRUE(sch.get(BlockRV{"add"})->reads.at(0)->buffer.same_as(moved));
  EXPECT_NE(sch.trace().str().find("sch.transform_layout(b0, buffer=[\"write\", 0], "
                                   "index_map=lambda i, j: (j // 4, i, j % 4), pad_value=None)"),
            std::string::npos)
      << sch.trace().str();
  expect_same(*f, sch);
  sch.transform_layout(
      sch.get_block("relu"), BufferRole::kRead, 0,
      map2([](const Expr& i, const Expr& j) -> std::vector<Expr> { return {i * 12 + j}; }));
  expect_same(*f, sch);
}

TEST(TransformLayout, RoundsUpAndPads) {
  const auto f = dense(int64(7), 10, 6, 5);
  const IndexMap tiled = map2([](const Expr& i, const Expr& j) -> std::vector<Expr> {
    return {floordiv(i, 4), floordiv(j, 8), floormod(i, 4), floormod(j, 8)};
  });
  for (const bool pads : {false, true}) {
    Schedule sch(f);
    sch.transform_layout(sch.get_block("matmul"), BufferRole::kWrite, 0, tiled,
                         pads ? imm(kFloat32, 2.5) : Expr());
    const Ref<Buffer> moved = sch.get(BlockRV{"matmul"})->writes.at(0)->buffer;
    EXPECT_EQ(as_ints(moved->shape), (std::vector<int64_t>{2, 2, 4, 8}));
    EXPECT_EQ(sch.has_block("t_padding"), pads);
    expect_same(*f, sch);
  }
}

TEST(TransformLayout, PaddingHoldsItsValue) {
  // `all` reads the whole of the padded buffer: what the map added is there.
  const auto a = tensor("a", std::vector<int64_t>{5}), t = tensor("t", std::vector<int64_t>{5}),
             out = tensor("out", std::vector<int64_t>{5});
  const auto f = function(
      {a, out}, {t},
      {compute("first", t, {int64(5)}, [&](const auto& v) { return load(a, {v[0]}); }),
       compute("second", out, {int64(5)}, [&](const auto& v) { return load(t, {v[0]}); })});
  Schedule sch(f);
  const Ref<Var> i = var("i");
  sch.transform_layout(sch.get_block("first"), BufferRole::kWrite, 0,
                       {{i}, {floordiv(i, 4), floormod(i, 4)}}, imm(kFloat32, -1.0));
  const Ref<Buffer> moved = sch.get(BlockRV{"second"})->reads.at(0)->buffer;
  const auto all = tensor("all", {2, 4});
  std::vector<Stmt> stmts = stmts_of(root_block(*sch.func())->body);
  stmts.push_back(compute("all", all, to_exprs({2, 4}),
                          [&](const auto& v) { return load(moved, {v[0], v[1]}); }));
  const auto g = function({a, out, all}, {moved}, stmts);
  const auto values = results(*g);
  for (size_t k = 5; k < 8; ++k) EXPECT_EQ(values.at(2).at(k), -1.0);
  for (size_t k = 0; k < 5; ++k) EXPECT_EQ(values.at(2).at(k), values.at(0).at(k));
}

TEST(TransformLayout, RefusesWhatIsNoLayout) {
  const auto f = dense(int64(8), 12, 6, 6);
  Schedule sch(f);
  const BlockRV matmul = sch.get_block("matmul");
  const auto attempt = [&](const BlockRV& block, BufferRole role, int64_t index,
                           const IndexMap& map, const Expr& pad = {}) {
    return refusal([&] { sch.transform_layout(block, role, index, map, pad); });
  };
  const IndexMap swapped =
      map2([](const Expr& i, const Expr& j) { return std::vector<Expr>{j, i}; });
  EXPECT_EQ(attempt(matmul, BufferRole::kRead, 0, swapped),
            "`a` is no intermediate of the function; its layout belongs to whoever gives it");
  EXPECT_EQ(attempt(matmul, BufferRole::kWrite, 1, swapped),
            "block `matmul` has 1 writes; 1 was asked for");
  const IndexMap lossy =
      map2([](const Expr& i, const Expr& j) { return std::vector<Expr>{floordiv(i, 2), j}; });
  EXPECT_EQ(attempt(matmul, BufferRole::kWrite, 0, lossy),
            "index map `lambda i, j: (i // 2, j)` does not give each place of shape (8, 12) one of "
            "its own");
  const Ref<Var> i = var("i");
  EXPECT_EQ(attempt(matmul, BufferRole::kWrite, 0, {{i}, {i}}),
            "index map `lambda i: (i,)` takes 1 indices; `t` has 2 dimensions");
  EXPECT_EQ(attempt(matmul, BufferRole::kWrite, 0, swapped, int64(0)),
            "the padding of `t` has dtype int64; expected float32");
  sch.storage_align(matmul, 0, 0, 16, 1);
  EXPECT_EQ(attempt(matmul, BufferRole::kWrite, 0, swapped),
            "the strides of `t` are aligned in its present layout");
}

// ---- pad_einsum

Ref<PrimFunc> product(int64_t m, int64_t n, int64_t k) {
  const auto a = tensor("a", {m, k}), b = tensor("b", {k, n}), out = tensor("out", {m, n});
  return function(
      {a, b, out}, {},
      {compute(
          "matmul", out, to_exprs({m, n, k}),
          [&](const auto& v) { return load(a, {v[0], v[2]}) * load(b, {v[2], v[1]}); }, 1)});
}

TEST(PadEinsum, RunsOverWholeTiles) {
  const auto f = product(7, 10, 5);
  Schedule sch(f);
  sch.pad_einsum(sch.get_block("matmul"), {4, 8, 2});
  const Ref<Block> block = sch.get(BlockRV{"matmul"});
  EXPECT_EQ(as_int(block->iter_vars[0].domain.extent), 8);
  EXPECT_EQ(as_int(block->iter_vars[1].domain.extent), 16);
  EXPECT_EQ(as_int(block->iter_vars[2].domain.extent), 6);
  EXPECT_TRUE(sch.has_block("a_pad") && sch.has_block("b_pad") && sch.has_block("out_pad"));
  expect_same(*f, sch);
  // What it is for: tiles without predicates.
  const auto loops = sch.get_loops(sch.get_block("matmul"));
  const auto i = sch.split(loops[0], 4), j = sch.split(loops[1], 8);
  sch.reorder({i[0], j[0], loops[2], i[1], j[1]});
  EXPECT_TRUE(is_int(sch.realize(BlockRV{"matmul"})->predicate, 1));
  sch.blockize(i[1]);
  expect_same(*f, sch);
}

TEST(PadEinsum, LeavesBuffersThatFit) {
  const auto f = product(8, 10, 6);
  Schedule sch(f);
  sch.pad_einsum(sch.get_block("matmul"), {4, 4, 2});
  EXPECT_FALSE(sch.has_block("a_pad"));
  EXPECT_TRUE(sch.has_block("b_pad") && sch.has_block("out_pad"));
  expect_same(*f, sch);
}

TEST(PadEinsum, OfSymbolicRows) {
  const Ref<Var> m = Var::size("m");
  const auto a = tensor("a", {m, int64(6)}), b = tensor("b", {int64(6), int64(8)});
  const auto out = tensor("out", {m, int64(8)});
  const auto f = function(
      {a, b, out}, {},
      {compute(
          "matmul", out, {m, int64(8), int64(6)},
          [&](const auto& v) { return load(a, {v[0], v[2]}) * load(b, {v[2], v[1]}); }, 1)});
  Schedule sch(f);
  sch.pad_einsum(sch.get_block("matmul"), {4, 1, 1});
  for (const int64_t rows : {1, 4, 9}) expect_same(*f, sch, {{symbolic_vars(*f)[0].get(), rows}});
}

TEST(PadEinsum, RefusesWhatPaddingWouldChange) {
  {
    Schedule sch(dense(int64(4), 6, 5, 4, true));
    EXPECT_EQ(refusal([&] { sch.pad_einsum(sch.get_block("matmul"), {1, 4, 1}); }),
              "block `matmul` uses `b` at (v1 // 4, v2, v1 % 4); expected axes alone");
    EXPECT_EQ(refusal([&] { sch.pad_einsum(sch.get_block("matmul"), {1, 4}); }),
              "2 padding factors for the 3 axes of block `matmul`");
  }
  const auto a = tensor("a", {5, 3}), b = tensor("b", std::vector<int64_t>{5}),
             out = tensor("out", std::vector<int64_t>{5});
  const auto reduction = [&](const Expr& value, BinaryOp op, double start) {
    (void)value;
    return function(
        {a, b, out}, {},
        {compute(
            "sum", out, to_exprs({5, 3}),
            [&](const auto& v) { return load(a, {v[0], v[1]}) * load(b, {v[0]}); }, 1, op, start)});
  };
  {
    Schedule sch(reduction({}, BinaryOp::kMax, 0));
    EXPECT_EQ(refusal([&] { sch.pad_einsum(sch.get_block("sum"), {1, 4}); }),
              "block `sum` is no sum of products that starts at 0");
  }
  {
    Schedule sch(reduction({}, BinaryOp::kAdd, 1));
    EXPECT_EQ(refusal([&] { sch.pad_einsum(sch.get_block("sum"), {1, 4}); }),
              "block `sum` is no sum of products that starts at 0");
  }
  {
    // 0 times an infinite b would be NaN.
    Schedule sch(reduction({}, BinaryOp::kAdd, 0));
    EXPECT_EQ(refusal([&] { sch.pad_einsum(sch.get_block("sum"), {1, 4}); }),
              "`b` does not depend on reduction axis `v1`, so that 0 times it need not be 0");
    sch.pad_einsum(sch.get_block("sum"), {4, 1});
    expect_same(*reduction({}, BinaryOp::kAdd, 0), sch);
  }
}

TEST(PadEinsum, RefusesAResultThatIsNotWhole) {
  const auto a = tensor("a", {5, 3}), out = tensor("out", {2, 5});
  const auto f = function(
      {a, out}, {},
      {compute(
          "sum", out, to_exprs({5, 3}), [&](const auto& v) { return load(a, {v[0], v[1]}); }, 1,
          BinaryOp::kAdd, 0, [](const auto& v) { return std::vector<Expr>{int64(1), v[0]}; })});
  Schedule sch(f);
  EXPECT_EQ(refusal([&] { sch.pad_einsum(sch.get_block("sum"), {4, 1}); }),
            "block `sum` writes `out` at (1, v0), which is not all of shape (2, 5)");
}

// ---- decompose_padding

Ref<PrimFunc> padded(int64_t rows, int64_t columns) {
  const auto x = tensor("x", {rows, columns}), out = tensor("out", {rows + 3, columns + 2});
  return function(
      {x, out}, {}, {compute("pad", out, to_exprs({rows + 3, columns + 2}), [&](const auto& v) {
        const Expr inside = logical_and(logical_and(int64(1) <= v[0], v[0] < int64(rows + 1)),
                                        logical_and(int64(1) <= v[1], v[1] <= int64(columns)));
        return if_then_else(inside, load(x, {v[0] - 1, v[1] - 1}), imm(kFloat32, 0.5));
      })});
}

TEST(DecomposePadding, FillsAndCopies) {
  const auto f = padded(4, 5);
  for (const size_t at : {size_t{0}, size_t{1}}) {
    Schedule sch(f);
    const auto loops = sch.get_loops(sch.get_block("pad"));
    const BlockRV fill = sch.decompose_padding(sch.get_block("pad"), loops[at]);
    EXPECT_EQ(fill.name, "pad_pad_const");
    EXPECT_EQ(as_int(sch.get(BlockRV{"pad"})->iter_vars[1].domain.extent), 5);
    EXPECT_EQ(as_int(sch.get(BlockRV{"pad"})->iter_vars[0].domain.extent), at == 0 ? 4 : 7);
    expect_same(*f, sch);
  }
}

TEST(DecomposePadding, RefusesOtherChoices) {
  {
    Schedule sch(dense(int64(4), 6, 5, 6));
    const auto loops = sch.get_loops(sch.get_block("relu"));
    EXPECT_EQ(refusal([&] { sch.decompose_padding(sch.get_block("relu"), loops[0]); }),
              "block `relu` is no padding alone in its loops: expected one store of "
              "`T.if_then_else(inside, value, constant)`");
  }
  const auto x = tensor("x", std::vector<int64_t>{6}), out = tensor("out", std::vector<int64_t>{6});
  const auto f = function({x, out}, {}, {compute("pad", out, {int64(6)}, [&](const auto& v) {
                            return if_then_else(eq(floormod(v[0], 2), int64(0)), load(x, {v[0]}),
                                                imm(kFloat32, 0.0));
                          })});
  Schedule sch(f);
  const auto loops = sch.get_loops(sch.get_block("pad"));
  EXPECT_EQ(refusal([&] { sch.decompose_padding(sch.get_block("pad"), loops[0]); }),
            "condition v0 % 2 == 0 of block `pad` does not bound one axis");
}

TEST(Annotate, OfLoopsIsTakenBack) {
  const auto f = padded(4, 5);
  Schedule sch(f);
  const auto loops = sch.get_loops(sch.get_block("pad"));
  sch.annotate(loops[0], "pragma_note", AttrValue(3));
  EXPECT_TRUE(sch.get(loops[0])->annotations.contains("pragma_note"));
  sch.unannotate(loops[0], "pragma_note");
  EXPECT_EQ(refusal([&] { sch.unannotate(loops[0], "pragma_note"); }),
            "loop `i0` has no annotation `pragma_note`");
  expect_same(*f, sch);
}

}  // namespace
}  // namespace tenon::tir
