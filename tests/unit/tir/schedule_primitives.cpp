// SPDX-License-Identifier: Apache-2.0
// Each primitive: what it does, and what it refuses.
#include <gtest/gtest.h>

#include "schedule_evaluate.h"
#include "schedule_kernels.h"
#include "tenon/tir/schedule/schedule.h"

namespace tenon::tir {
namespace {

using testing::dense;
using testing::dump;
using testing::results;

void expect_same(const PrimFunc& before, const PrimFunc& after, const testing::Env& symbols = {}) {
  const auto a = results(before, symbols);
  std::vector<std::vector<double>> b;
  try {
    b = results(after, symbols);
  } catch (const std::exception& error) {
    FAIL() << error.what() << "\n" << dump(after);
  }
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t k = 0; k < a[i].size(); ++k)
      ASSERT_NEAR(a[i][k], b[i][k], 1e-9) << "element " << k << "\n" << dump(after);
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

TEST(Split, CoversAnExtentThatFactorsDoNotDivide) {
  const auto f = dense(int64(5), 7, 3, 7, true);
  Schedule sch(f);
  auto loops = sch.get_loops(sch.get_block("matmul"));
  const auto parts = sch.split(loops[1], {Expr(), int64(2), int64(2)});
  EXPECT_EQ(as_int(sch.get(parts[0])->extent), 2);
  expect_same(*f, *sch.func());
  EXPECT_EQ(refusal([&] { sch.split(loops[0], {int64(2), int64(2)}); }),
            "factors (2, 2) of `i0` cover 4 iterations; expected at least 5");
}

TEST(Fuse, GivesOneLoop) {
  const auto f = dense(int64(4), 6, 3, 6, true);
  Schedule sch(f);
  auto loops = sch.get_loops(sch.get_block("matmul"));
  const LoopRV fused = sch.fuse({loops[0], loops[1]});
  EXPECT_EQ(as_int(sch.get(fused)->extent), 24);
  expect_same(*f, *sch.func());
  EXPECT_EQ(refusal([&] { sch.fuse({loops[2], fused}); }),
            "loop `i0_i1_fused` is not directly inside `i2`; expected nested loops");
}

TEST(Reorder, PutsLoopsInOrder) {
  const auto f = dense(int64(4), 6, 3, 6, true);
  Schedule sch(f);
  auto loops = sch.get_loops(sch.get_block("matmul"));
  sch.reorder({loops[2], loops[0]});
  const auto after = sch.get_loops(sch.get_block("matmul"));
  EXPECT_TRUE(after[0] == loops[2] && after[1] == loops[1] && after[2] == loops[0]);
  expect_same(*f, *sch.func());
}

TEST(LoopPartition, CutsDomainsAndRenames) {
  const auto f = dense(int64(9), 6, 3, 6, true);
  Schedule sch(f);
  auto loops = sch.get_loops(sch.get_block("matmul"));
  const auto parts = sch.loop_partition(loops[0], {int64(4)});
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(as_int(sch.get(parts[1])->extent), 5);
  EXPECT_EQ(as_int(sch.get(sch.get_block("matmul_1"))->iter_vars[0].domain.min), 4);
  expect_same(*f, *sch.func());
  const auto again = sch.get_loops(sch.get_block("matmul"));
  EXPECT_EQ(refusal([&] { sch.loop_partition(again[2], {int64(1)}); }),
            "loop `i2` runs over the reduction of block `matmul`; decompose it first");
}

TEST(LoopPartition, NoDimensionIsNegative) {
  const auto n = make<Var>("n", kInt64);
  const Expr rows = floordiv(n + 320, 640) - 1;  // by arithmetic perhaps -1
  Schedule sch(dense(rows, 6, 3, 6, true));
  const auto loops = sch.get_loops(sch.get_block("matmul"));
  const auto parts = sch.loop_partition(
      loops[0], {arith::simplify(floordiv(rows, 8) * 8), arith::simplify(floordiv(rows, 4) * 4)});
  EXPECT_EQ(parts.size(), 3u);
}

TEST(Parallel, RefusesAReduction) {
  Schedule sch(dense(int64(4), 6, 3, 6, true));
  auto loops = sch.get_loops(sch.get_block("matmul"));
  EXPECT_EQ(refusal([&] { sch.parallel(loops[2]); }),
            "loop `i2` carries axis `v2` of block `matmul`, which is no spatial one; it cannot be "
            "parallel");
  sch.parallel(loops[0]);
  EXPECT_EQ(refusal([&] { sch.parallel(loops[1]); }), "loop `i1` is inside parallel loop `i0`");
}

TEST(ComputeInline, PutsTheValueInItsReaders) {
  const auto f = dense(int64(4), 6, 3, 6);
  Schedule sch(f);
  sch.compute_inline(sch.get_block("add"));
  EXPECT_FALSE(sch.has_block("add"));
  expect_same(*f, *sch.func());
  EXPECT_EQ(refusal([&] { sch.compute_inline(sch.get_block("matmul")); }),
            "block `matmul` is not element-wise: expected spatial axes and one store");
}

TEST(CacheWrite, TakesTheEpilogueIn) {
  const auto f = dense(int64(4), 6, 3, 6);
  Schedule sch(f);
  sch.compute_inline(sch.get_block("add"));
  sch.cache_write(sch.get_block("matmul"), 0, "local");
  sch.reverse_compute_inline(sch.get_block("relu"));
  EXPECT_EQ(sch.blocks().size(), 2u);
  auto loops = sch.get_loops(sch.get_block("matmul"));
  sch.reverse_compute_at(sch.get_block("relu"), loops[0]);
  EXPECT_EQ(sch.get_loops(sch.get_block("relu")).size(), 2u);
  expect_same(*f, *sch.func());
  EXPECT_TRUE(refusal([&] {
                sch.reverse_compute_at(sch.get_block("relu"), loops[2]);
              }).find("already") == std::string::npos);
}

/// t from x, then out from t.
Ref<PrimFunc> producer_and_consumer(
    const std::vector<int64_t>& shape, const std::vector<int64_t>& out_shape,
    const std::function<Expr(const Ref<Buffer>&, const std::vector<Expr>&)>& value) {
  const auto x = testing::tensor("x", shape), t = testing::tensor("t", shape);
  const auto out = testing::tensor("out", out_shape);
  return testing::function(
      {x, out}, {t},
      {testing::compute("first", t, t->shape,
                        [&](const std::vector<Expr>& v) { return load(x, v) + load(x, v); }),
       testing::compute("last", out, out->shape,
                        [&](const std::vector<Expr>& v) { return value(t, v); })});
}

TEST(ReverseComputeInline, KeepsToWhatAnAxisOfOneElementReads) {
  // The last column of a panel of eight.
  const auto f = producer_and_consumer(
      {5, 8}, {5, 1}, [](const Ref<Buffer>& t, const std::vector<Expr>& v) { return load(t, v); });
  Schedule sch(f);
  sch.reverse_compute_inline(sch.get_block("last"));
  EXPECT_EQ(sch.get_loops(sch.get_block("last")).size(), 1u);
  expect_same(*f, *sch.func());
}

TEST(ReverseComputeInline, KeepsToWhatAConstantIndexReads) {
  const auto f = producer_and_consumer(
      {5, 8}, {5},
      [](const Ref<Buffer>& t, const std::vector<Expr>& v) { return load(t, {v[0], int64(3)}); });
  Schedule sch(f);
  sch.reverse_compute_inline(sch.get_block("last"));
  expect_same(*f, *sch.func());
}

TEST(ReverseComputeInline, RunsUnderAConditionWhereAxesAreJoined) {
  const auto x = testing::tensor("x", std::vector<int64_t>{40}),
             out = testing::tensor("out", std::vector<int64_t>{5});
  const auto t = testing::tensor("t", std::vector<int64_t>{5, 8});
  const auto f = testing::function(
      {x, out}, {t},
      {testing::compute(
           "first", t, x->shape, [&](const std::vector<Expr>& v) { return load(x, v); }, 0,
           BinaryOp::kAdd, 0,
           [](const std::vector<Expr>& v) {
             return std::vector<Expr>{floordiv(v[0], 8), floormod(v[0], 8)};
           }),
       testing::compute("last", out, out->shape,
                        [&](const std::vector<Expr>& v) { return load(t, {v[0], int64(3)}); })});
  Schedule sch(f);
  sch.reverse_compute_inline(sch.get_block("last"));
  EXPECT_FALSE(is_int(sch.realize(sch.get_block("last"))->predicate, 1));
  expect_same(*f, *sch.func());
}

TEST(ReverseComputeInline, RefusesWhatTheProducerDoesNotMake) {
  const auto f =
      producer_and_consumer({5, 8}, {5, 8}, [](const Ref<Buffer>& t, const std::vector<Expr>& v) {
        return if_then_else(v[0] < int64(4), load(t, {v[0] + 1, v[1]}), imm(kFloat32, 0.0));
      });
  Schedule sch(f);
  EXPECT_EQ(refusal([&] { sch.reverse_compute_inline(sch.get_block("last")); }),
            "block `last` cannot be put into a producer: block `first` is not known to make all "
            "that it reads of `t`");
}

TEST(ReverseComputeInline, RefusesWhereInputsChangeBetween) {
  const auto x = testing::tensor("x", std::vector<int64_t>{5}), t = testing::tensor("t", x->shape);
  const auto out = testing::tensor("out", x->shape);
  const auto copy = [&](const char* name, const Ref<Buffer>& to, const Ref<Buffer>& from,
                        int64_t shift) {
    return testing::compute(name, to, x->shape, [&](const std::vector<Expr>& v) {
      return load(from, {shift == 0 ? v[0] : floormod(v[0] + shift, 5)});
    });
  };
  const Stmt clear = testing::compute("clear", x, x->shape,
                                      [](const std::vector<Expr>&) { return imm(kFloat32, 0.0); });
  const auto changed =
      testing::function({x, out}, {t}, {copy("first", t, x, 0), clear, copy("last", out, t, 0)});
  Schedule sch(changed);
  EXPECT_EQ(refusal([&] { sch.reverse_compute_inline(sch.get_block("last")); }),
            "block `last` cannot be put into a producer: block `clear` writes `x`, which `first` "
            "reads before");
  const auto rotated = testing::function({x}, {t}, {copy("first", t, x, 1), copy("last", x, t, 0)});
  Schedule in_place(rotated);
  EXPECT_EQ(refusal([&] { in_place.reverse_compute_inline(in_place.get_block("last")); }),
            "block `last` cannot be put into a producer: `x` is read at other places than it is "
            "written");
}

TEST(ReverseComputeInline, RefusesABlockThatSharesItsLoops) {
  const auto x = testing::tensor("x", std::vector<int64_t>{5}), t = testing::tensor("t", x->shape);
  const auto out = testing::tensor("out", x->shape), more = testing::tensor("more", x->shape);
  const auto twice = [&](const char* name, const Ref<Buffer>& to, const Ref<Buffer>& from) {
    return testing::compute(name, to, x->shape, [&](const std::vector<Expr>& v) {
      return load(from, v) * imm(kFloat32, 2.0);
    });
  };
  Schedule sch(
      testing::function({x, out, more}, {t},
                        {twice("first", t, x), twice("last", out, t), twice("second", more, out)}));
  const BlockRV last = sch.get_block("last");
  sch.reverse_compute_at(sch.get_block("second"), sch.get_loops(last)[0]);
  EXPECT_EQ(refusal([&] { sch.reverse_compute_inline(last); }),
            "block `last` shares its loops with others; it cannot be moved");
}

TEST(ReverseComputeInline, RefusesWhereAnotherBlockWritesTheSame) {
  const auto x = testing::tensor("x", std::vector<int64_t>{5, 3});
  const auto t = testing::tensor("t", std::vector<int64_t>{5});
  const auto out = testing::tensor("out", t->shape);
  const auto f = testing::function(
      {x, out}, {t},
      {testing::compute("first", t, t->shape,
                        [&](const std::vector<Expr>& v) { return load(x, {v[0], int64(0)}); }),
       testing::compute(
           "sum", t, x->shape, [&](const std::vector<Expr>& v) { return load(x, v); }, 1),
       testing::compute("last", out, t->shape,
                        [&](const std::vector<Expr>& v) { return load(t, v); })});
  Schedule sch(f);
  EXPECT_EQ(refusal([&] { sch.reverse_compute_inline(sch.get_block("last")); }),
            "block `last` cannot be put into a producer: block `sum` is not element-wise");
}

TEST(ReverseComputeAt, RefusesInsideTheReduction) {
  Schedule sch(dense(int64(4), 6, 3, 6));
  auto loops = sch.get_loops(sch.get_block("matmul"));
  sch.compute_inline(sch.get_block("add"));
  EXPECT_EQ(refusal([&] { sch.reverse_compute_at(sch.get_block("relu"), loops[2]); }),
            "loop `i2` runs over axis `v2` of block `matmul`, so that `t` is not complete inside");
}

TEST(ReverseComputeAt, RefusesPartsOfRowsThatLoopsLeaveUnwritten) {
  const auto f = dense(int64(4), 6, 3, 6);
  Schedule sch(f);
  sch.compute_inline(sch.get_block("add"));
  const BlockRV product = sch.get_block("matmul"), relu = sch.get_block("relu");
  const auto loops = sch.get_loops(product);
  const LoopRV fused = sch.fuse({loops[0], loops[1]});
  Schedule rows = sch;
  // Eight elements are a row and two more.
  EXPECT_EQ(refusal([&] { sch.reverse_compute_at(relu, sch.split(fused, 8)[0]); }),
            "below loop `i0_i1_fused_0` block `relu` is not known to read only what block `matmul` "
            "has written to `t` by then");
  const LoopRV row = rows.split(fused, 6)[0];
  rows.reverse_compute_at(relu, row);
  EXPECT_EQ(rows.get_loops(relu).size(), 2u);
  expect_same(*f, *rows.func());
}

TEST(ReverseComputeAt, FollowsASplitThatDoesNotDivide) {
  const auto f = dense(int64(7), 6, 3, 6);
  Schedule sch(f);
  sch.compute_inline(sch.get_block("add"));
  const auto tiles = sch.split(sch.get_loops(sch.get_block("matmul"))[0], 3);
  sch.reverse_compute_at(sch.get_block("relu"), tiles[0]);
  expect_same(*f, *sch.func());
}

TEST(ReverseComputeAt, RefusesWhatIsRunForAPartOfTheRowsOnly) {
  const auto f = dense(int64(7), 6, 3, 6);
  Schedule sch(f);
  sch.compute_inline(sch.get_block("add"));
  const auto parts = sch.loop_partition(sch.get_loops(sch.get_block("matmul"))[0], {int64(4)});
  EXPECT_EQ(refusal([&] { sch.reverse_compute_at(sch.get_block("relu"), parts[1]); }),
            "below loop `i0_1` block `relu` is not known to run at least once at each point of its "
            "domain");
}

TEST(ReverseComputeAt, RefusesToOverwriteWhatIsReadLater) {
  const auto a = testing::tensor("a", std::vector<int64_t>{5}), t = testing::tensor("t", a->shape);
  const auto f = testing::function(
      {a}, {t},
      {testing::compute("next", t, a->shape,
                        [&](const std::vector<Expr>& v) {
                          return load(a, {floormod(v[0] + 1, 5)}) * imm(kFloat32, 2.0);
                        }),
       testing::compute("back", a, a->shape,
                        [&](const std::vector<Expr>& v) { return load(t, v); })});
  Schedule sch(f);
  EXPECT_EQ(refusal([&] {
              sch.reverse_compute_at(sch.get_block("back"),
                                     sch.get_loops(sch.get_block("next"))[0]);
            }),
            "blocks `back` and `next` both use `a`; they keep their order");
}

TEST(Reorder, KeepsLoopsThatCarryAReductionAndOtherAxes) {
  const auto f = dense(int64(4), 6, 3, 6, true);
  Schedule sch(f);
  const auto loops = sch.get_loops(sch.get_block("matmul"));
  const auto parts = sch.split(sch.fuse({loops[1], loops[2]}), 2);
  EXPECT_EQ(
      refusal([&] { sch.reorder({parts[1], parts[0]}); }),
      "loops around block `matmul` carry its reduction and other axes; they keep their order");
  sch.reorder({parts[0], loops[0]});
  expect_same(*f, *sch.func());
}

TEST(ComputeAt, ComputesWhatIsNeeded) {
  const auto f = testing::conv({.ic = 4, .oc = 4, .h = 6, .w = 6, .kernel = 3, .pad = 1, .v = 4});
  Schedule sch(f);
  auto loops = sch.get_loops(sch.get_block("conv"));
  sch.compute_at(sch.get_block("pad"), loops[2]);  // a row of outputs needs three of inputs
  const auto inner = sch.get_loops(sch.get_block("pad"));
  std::vector<int64_t> extents;
  for (const LoopRV& loop : inner) extents.push_back(as_int(sch.get(loop)->extent).value_or(0));
  EXPECT_EQ(extents, (std::vector<int64_t>{1, 1, 6, 3, 8, 4}));
  expect_same(*f, *sch.func());
}

TEST(DecomposeReduction, LeavesOutLoopsThatCarryNoAxis) {
  const auto f = dense(int64(5), 4, 6, 4, true);
  Schedule sch(f);
  const auto j = sch.split(sch.get_loops(sch.get_block("matmul"))[1], 4);
  const auto outer = sch.split(j[0], 3);  // once, under a condition on the second of them
  sch.decompose_reduction(sch.get_block("matmul"), outer[0]);
  expect_same(*f, *sch.func());
}

TEST(DecomposeReduction, RefusesASumThatIsTakenAgain) {
  const auto x = testing::tensor("x", std::vector<int64_t>{6, 3});
  const auto t = testing::tensor("t", std::vector<int64_t>{6});
  const auto y = testing::tensor("y", std::vector<int64_t>{5});
  const auto f = testing::function(
      {x, y}, {t},
      {testing::compute(
           "sum", t, to_exprs({6, 3}), [&](const std::vector<Expr>& v) { return load(x, v); }, 1),
       testing::compute(
           "pair", y, to_exprs({5, 2}),
           [&](const std::vector<Expr>& v) { return load(t, {v[0] + v[1]}); }, 1)});
  Schedule sch(f);
  const BlockRV sum = sch.get_block("sum");
  sch.compute_at(sum, sch.get_loops(sch.get_block("pair"))[0]);
  expect_same(*f, *sch.func());
  const auto loops = sch.get_loops(sum);
  Schedule inside = sch;
  inside.decompose_reduction(sum, loops[2]);
  expect_same(*f, *inside.func());
  EXPECT_EQ(
      refusal([&] { sch.decompose_reduction(sum, loops[0]); }),
      "from loop `i0` on block `sum` is not known to run once at most at each point; it would "
      "start once only");
}

TEST(CacheWrite, GivesAPartialSumASumOfItsOwn) {
  for (const BinaryOp op : {BinaryOp::kAdd, BinaryOp::kMul, BinaryOp::kMin, BinaryOp::kMax}) {
    const auto x = testing::tensor("x", std::vector<int64_t>{4, 6}),
               y = testing::tensor("y", std::vector<int64_t>{4});
    const auto with_init = testing::function(
        {x, y}, {},
        {testing::compute("part", y, x->shape, [&](const auto& v) { return load(x, v); }, 1, op)});
    const Ref<PrimFunc> f = with_init->with_body(
        rewrite(with_init->body, [](const NodePtr& node) -> std::optional<NodePtr> {
          const auto* block = node.as<Block>();
          if (!block || !block->init) return std::nullopt;
          Block::Parts parts = block->parts();
          parts.init = {};
          parts.reads.push_back(parts.writes.at(0));
          return NodePtr(make<Block>(std::move(parts)));
        }));
    Schedule sch(f);
    sch.cache_write(sch.get_block("part"), 0, "local");
    EXPECT_TRUE(sch.get(sch.get_block("part"))->init);
    expect_same(*f, *sch.func());
  }
}

TEST(CacheWrite, RefusesABlockThatRunsForAPartOfItsPlaces) {
  const auto f = dense(int64(4), 6, 3, 6, true);
  Schedule sch(f);
  const BlockRV block = sch.get_block("matmul");
  const auto loops = sch.get_loops(block);
  sch.loop_partition(sch.fuse({loops[0], loops[1]}), {int64(9)});
  EXPECT_EQ(refusal([&] { sch.cache_write(block, 0, "local"); }),
            "the loops of block `matmul` are not known to run all of its domain");
}

TEST(DecomposeReduction, StartsBeforeTheLoop) {
  const auto f = dense(int64(4), 6, 3, 6, true);
  Schedule sch(f);
  auto loops = sch.get_loops(sch.get_block("matmul"));
  sch.reorder({loops[0], loops[2], loops[1]});
  sch.vectorize(loops[1]);
  const BlockRV start = sch.decompose_reduction(sch.get_block("matmul"), loops[2]);
  EXPECT_EQ(sch.get(sch.get_loops(start).back())->kind, ForKind::kVectorized);
  EXPECT_FALSE(sch.get(sch.get_block("matmul"))->init);
  expect_same(*f, *sch.func());
}

TEST(Rfactor, KeepsPartsInLanes) {
  const auto f = dense(int64(4), 6, 8, 6, true);
  Schedule sch(f);
  auto loops = sch.get_loops(sch.get_block("matmul"));
  const auto k = sch.split(loops[2], 4);
  const BlockRV part = sch.rfactor(k[1]);
  EXPECT_EQ(sch.get(part)->iter_vars.size(), 4u);
  expect_same(*f, *sch.func());
}

TEST(BlockAxes, AreJoinedAndCut) {
  const auto f = dense(int64(4), 6, 8, 4);
  Schedule sch(f);
  sch.split_block_iter(sch.get_block("matmul"), 1, 4);  // 6 columns in two panels of 4
  EXPECT_EQ(sch.get(sch.get_block("matmul"))->iter_vars.size(), 4u);
  expect_same(*f, *sch.func());
  const auto g = testing::conv({.ic = 4, .oc = 8, .h = 5, .w = 3, .v = 4});
  Schedule flat(g);
  flat.fuse_block_iters(flat.get_block("conv"), 2, 2);
  flat.simplify_block_iters(flat.get_block("conv"));
  EXPECT_EQ(flat.get(flat.get_block("conv"))->iter_vars.size(), 4u);
  expect_same(*g, *flat.func());
}

TEST(CacheRead, PacksByAxes) {
  const auto f = dense(int64(4), 6, 8, 6, true);
  Schedule sch(f);
  const BlockRV copy = sch.reindex_cache_read(sch.get_block("matmul"), 0, "global", {2, 0});
  auto loops = sch.get_loops(sch.get_block("matmul"));
  sch.compute_at(copy, loops[0]);
  expect_same(*f, *sch.func());
}

TEST(Prefetch, SaysIntoWhichCache) {
  const auto f = dense(int64(4), 6, 8, 6);
  const auto locality = [](const Schedule& sch) {
    std::optional<int64_t> found;
    walk<Call>(sch.func()->body, [&](const Call& call) {
      if (call.is(IntrinsicId::kPrefetch)) found = as_int(call.arg(2));
    });
    return found;
  };
  for (const int64_t asked : {0, 2, 3}) {
    Schedule sch(f);
    const auto loops = sch.get_loops(sch.get_block("matmul"));
    sch.prefetch(sch.get_block("matmul"), 0, loops[2], loops[0], 1, asked);
    EXPECT_EQ(locality(sch), asked);
    expect_same(*f, *sch.func());
    EXPECT_EQ(locality(replay(sch.trace(), f)), asked);
  }
  Schedule sch(f);
  const auto loops = sch.get_loops(sch.get_block("matmul"));
  sch.prefetch(sch.get_block("matmul"), 0, loops[2], loops[0], 1);
  EXPECT_EQ(locality(sch), 2);  // where nothing is said
}

TEST(Trace, PrintsAndReplays) {
  const auto f = dense(int64(9), 6, 8, 6);
  Schedule sch(f);
  auto loops = sch.get_loops(sch.get_block("matmul"));
  const auto m = sch.split(loops[0], 4);
  sch.unroll(m[1]);
  EXPECT_EQ(sch.trace().str(),
            "b0 = sch.get_block(name=\"matmul\")\n"
            "l0, l1, l2 = sch.get_loops(b0)\n"
            "l3, l4 = sch.split(l0, factors=[None, 4])\n"
            "sch.unroll(l4)\n");
  const Schedule again = replay(sch.trace(), f);
  EXPECT_TRUE(structural_equal(sch.func(), again.func()));
}

}  // namespace
}  // namespace tenon::tir
