// SPDX-License-Identifier: Apache-2.0
// What primitives must not take: nests that run a part of a domain, carry two kinds of axes in one
// loop, or give values to one another from iteration to iteration.
#include <gtest/gtest.h>

#include "schedule_evaluate.h"
#include "schedule_kernels.h"
#include "tenon/tir/schedule/schedule.h"

namespace tenon::tir {
namespace {

using testing::compute;
using testing::dense;
using testing::dump;
using testing::results;
using testing::tensor;
using Axes = std::vector<Expr>;

/// Applies `change`; where it is accepted, the results must be the same. The message of a refusal.
std::string tried(const Ref<PrimFunc>& function, const std::function<void(Schedule&)>& change) {
  Schedule sch(function);
  try {
    change(sch);
  } catch (const CompileError& error) {
    EXPECT_EQ(error.first().code.id, kScheduleIllegal.id);
    return error.first().message;
  }
  try {
    EXPECT_EQ(results(*function), results(*sch.func())) << dump(*sch.func());
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what() << "\n" << dump(*sch.func());
  }
  return "accepted";
}

LoopRV loop(Schedule& sch, const char* block, size_t at) {
  return sch.get_loops(sch.get_block(block)).at(at);
}

/// One block over `extents`, bound to `values` of loops over `loops`.
Ref<PrimFunc> bound(const std::vector<Ref<Buffer>>& params, const std::string& name,
                    const std::vector<int64_t>& loops, const std::vector<IterVar>& axes,
                    const std::function<Axes(const Axes&)>& values, const Stmt& body,
                    const Stmt& init = {}) {
  std::vector<Ref<Var>> vars;
  Axes exprs;
  for (size_t i = 0; i < loops.size(); ++i) {
    vars.push_back(var(fmt::format("i{}", i)));
    exprs.push_back(vars.back());
  }
  Block::Parts parts;
  parts.name = name;
  parts.iter_vars = axes;
  parts.init = init;
  parts.body = body;
  const auto block = with_accesses(make<Block>(std::move(parts)));
  return testing::function(
      params, {},
      {nest(vars, to_exprs(loops), make<BlockRealize>(values(exprs), boolean(true), block))});
}

TEST(Fuse, RefusesAReductionInAParallelLoop) {
  const auto f = dense(int64(4), 6, 3, 6, true);
  EXPECT_EQ(tried(f,
                  [](Schedule& sch) {
                    sch.parallel(loop(sch, "matmul", 1));
                    sch.fuse({loop(sch, "matmul", 1), loop(sch, "matmul", 2)});
                  }),
            "loop `i2` carries axis `v2` of block `matmul`, which is no spatial one; it cannot be "
            "fused into one that is not serial");
}

TEST(Rfactor, RefusesALoopThatCarriesAReductionAndAnotherAxis) {
  const auto f = dense(int64(4), 6, 8, 6, true);
  EXPECT_EQ(
      tried(f,
            [](Schedule& sch) {
              const auto k = sch.split(loop(sch, "matmul", 2), 4);
              sch.fuse({loop(sch, "matmul", 1), k[0]});
              sch.rfactor(k[1]);
            }),
      "loop `i1_i2_0_fused` carries spatial axis `v1` and a reduction axis of block `matmul`");
}

// y[v, v] = the sum over k of x[v, k] * w[k]: the padded result is copied out as a whole.
TEST(PadEinsum, RefusesADiagonalOfTheResult) {
  const auto x = tensor("x", std::vector<int64_t>{5, 3}), w = tensor("w", std::vector<int64_t>{3});
  const auto y = tensor("y", std::vector<int64_t>{5, 5});
  const Ref<Var> v = var("v"), k = var("k");
  const std::vector<Expr> at = {v, v};
  const auto f = bound(
      {x, w, y}, "sum", {5, 3},
      {{v, {int64(0), int64(5)}, IterKind::kSpatial}, {k, {int64(0), int64(3)}, IterKind::kReduce}},
      [](const Axes& i) { return i; },
      make<BufferStore>(y, load(y, at) + load(x, {v, k}) * load(w, {k}), at),
      make<BufferStore>(y, imm(kFloat32, 0.0), at));
  EXPECT_EQ(tried(f, [](Schedule& sch) { sch.pad_einsum(sch.get_block("sum"), {4, 1}); }),
            "block `sum` writes `y` at (v, v), which is not all of shape (5, 5)");
}

// y[0] = 2 * y[0] + x[v] for each v in order, over two loops.
TEST(Reorder, KeepsTheOrderOfAScan) {
  const auto x = tensor("x", std::vector<int64_t>{12});
  const auto y = tensor("y", std::vector<int64_t>{1});
  const Ref<Var> v = var("v");
  for (const IterKind kind : {IterKind::kScan, IterKind::kOpaque}) {
    const auto f = bound(
        {x, y}, "scan", {3, 4}, {{v, {int64(0), int64(12)}, kind}},
        [](const Axes& i) { return Axes{i[0] * 4 + i[1]}; },
        make<BufferStore>(y, load(y, {int64(0)}) * imm(kFloat32, 2.0) + load(x, {v}),
                          std::vector<Expr>{int64(0)}));
    EXPECT_EQ(
        tried(f, [](Schedule& sch) { sch.reorder({loop(sch, "scan", 1), loop(sch, "scan", 0)}); }),
        "the scan and opaque axes of block `scan` must run in order");
  }
}

// y[v] = x[v] for the first three of eight.
Ref<PrimFunc> part_of_a_domain() {
  const auto x = tensor("x", std::vector<int64_t>{8}), y = tensor("y", x->shape);
  const Ref<Var> v = var("v");
  return bound(
      {x, y}, "copy", {3}, {{v, {int64(0), int64(8)}, IterKind::kSpatial}},
      [](const Axes& i) { return i; }, make<BufferStore>(y, load(x, {v}), std::vector<Expr>{v}));
}

// The diagonal of a square.
Ref<PrimFunc> diagonal() {
  const auto x = tensor("x", std::vector<int64_t>{5, 5}), y = tensor("y", x->shape);
  const Ref<Var> v = var("v"), w = var("w");
  const Range domain{int64(0), int64(5)};
  return bound(
      {x, y}, "copy", {5}, {{v, domain, IterKind::kSpatial}, {w, domain, IterKind::kSpatial}},
      [](const Axes& i) { return Axes{i[0], i[0]}; },
      make<BufferStore>(y, load(x, {v, w}), std::vector<Expr>{v, w}));
}

TEST(BlockAxes, StayWhereABlockRunsForAPartOfItsDomain) {
  const std::string refusal = "the loops of block `copy` are not known to run all of its domain";
  for (const auto& f : {part_of_a_domain(), diagonal()}) {
    EXPECT_EQ(tried(f, [](Schedule& sch) { sch.simplify_block_iters(sch.get_block("copy")); }),
              refusal);
    EXPECT_EQ(tried(f, [](Schedule& sch) { sch.split_block_iter(sch.get_block("copy"), 0, 1); }),
              refusal);
  }
  EXPECT_EQ(
      tried(diagonal(), [](Schedule& sch) { sch.fuse_block_iters(sch.get_block("copy"), 0, 2); }),
      refusal);
}

// y[v] = sum of x[v, k], where k runs over 2 .. 4 of 0 .. 4, or over each twice.
Ref<PrimFunc> odd_sum(bool twice) {
  const auto x = tensor("x", std::vector<int64_t>{3, 4}), y = tensor("y", std::vector<int64_t>{3});
  const Ref<Var> v = var("v"), k = var("k");
  const Stmt init = make<BufferStore>(y, imm(kFloat32, 0.0), std::vector<Expr>{v});
  return bound(
      {x, y}, "sum", {3, twice ? int64_t{8} : int64_t{2}},
      {{v, {int64(0), int64(3)}, IterKind::kSpatial}, {k, {int64(0), int64(4)}, IterKind::kReduce}},
      [&](const Axes& i) { return Axes{i[0], twice ? floordiv(i[1], 2) : i[1] + int64(2)}; },
      make<BufferStore>(y, load(y, {v}) + load(x, {v, k}), std::vector<Expr>{v}), init);
}

TEST(Reductions, StayWhereTheyRunForAPartOrTwice) {
  const std::string refusal =
      "the loops of block `sum` are not known to run all of its domain once";
  const std::string not_once = "block `sum` is not known to run once at each point of its domain";
  for (const bool twice : {false, true}) {
    const auto f = odd_sum(twice);
    EXPECT_EQ(tried(f, [](Schedule& sch) { sch.pad_reduction(sch.get_block("sum"), 1, 3); }),
              not_once);
    EXPECT_EQ(tried(f, [](Schedule& sch) { sch.rfactor(loop(sch, "sum", 1)); }), not_once);
    EXPECT_EQ(tried(f, [](Schedule& sch) { sch.simplify_block_iters(sch.get_block("sum")); }),
              refusal);
  }
  EXPECT_EQ(tried(odd_sum(false),
                  [](Schedule& sch) {
                    sch.decompose_reduction(sch.get_block("sum"), loop(sch, "sum", 1));
                  }),
            "the first iteration of the loops from `i1` on is not known to be the first step of "
            "axis `k`");
  EXPECT_EQ(tried(odd_sum(false), [](Schedule& sch) { sch.blockize(loop(sch, "sum", 1)); }),
            "accepted");
}

// As odd_sum(), of all of x; where the sum of the indices is at least `least`.
Ref<PrimFunc> guarded_sum(int64_t least) {
  const auto x = tensor("x", std::vector<int64_t>{3, 4}), y = tensor("y", std::vector<int64_t>{3});
  const Ref<Var> v = var("v"), k = var("k"), i = var("i"), j = var("j");
  Block::Parts parts;
  parts.name = "sum";
  parts.iter_vars = {{v, {int64(0), int64(3)}, IterKind::kSpatial},
                     {k, {int64(0), int64(4)}, IterKind::kReduce}};
  parts.init = make<BufferStore>(y, imm(kFloat32, 0.0), std::vector<Expr>{v});
  parts.body = make<BufferStore>(y, load(y, {v}) + load(x, {v, k}), std::vector<Expr>{v});
  const auto block = with_accesses(make<Block>(std::move(parts)));
  return testing::function({x, y}, {},
                           {nest({i, j}, to_exprs({3, 4}),
                                 make<BlockRealize>(std::vector<Expr>{i, j},
                                                    int64(least) <= Expr(i) + Expr(j), block))});
}

TEST(DecomposeReduction, StartsWhereTheReductionDoes) {
  for (const int64_t least : {0, 1, 2, 4})
    EXPECT_EQ(tried(guarded_sum(least),
                    [](Schedule& sch) {
                      sch.decompose_reduction(sch.get_block("sum"), loop(sch, "sum", 0));
                    }),
              "accepted")
        << least;
}

TEST(CacheWrite, RefusesPlacesThatSeveralPointsShare) {
  const auto x = tensor("x", std::vector<int64_t>{3, 4}), y = tensor("y", std::vector<int64_t>{6});
  const auto f =
      testing::function({x, y}, {},
                        {compute(
                            "last", y, x->shape, [&](const Axes& v) { return load(x, v); }, 0,
                            BinaryOp::kAdd, 0, [](const Axes& v) { return Axes{v[0] + v[1]}; })});
  EXPECT_EQ(tried(f,
                  [](Schedule& sch) {
                    sch.reorder({loop(sch, "last", 1), loop(sch, "last", 0)});
                    sch.cache_write(sch.get_block("last"), 0, "global");
                  }),
            "block `last` is not known to write each place of `y` at one point only");
}

TEST(CacheWrite, RefusesABlockThatReadsWhatItWrites) {
  const auto x = tensor("x", std::vector<int64_t>{5}), y = tensor("y", x->shape);
  const auto f = testing::function(
      {x, y}, {},
      {compute("add", y, x->shape, [&](const Axes& v) { return load(y, v) + load(x, v); })});
  EXPECT_EQ(tried(f, [](Schedule& sch) { sch.cache_write(sch.get_block("add"), 0, "global"); }),
            "block `add` reads what it writes to `y`; the new buffer does not hold it");
}

// t[i, j] = x[i, j], and y[i, j] = what was written one row before.
Ref<PrimFunc> from_row_to_row(bool before) {
  const auto x = tensor("x", std::vector<int64_t>{4, 5}), t = tensor("t", x->shape);
  const auto y = tensor("y", x->shape);
  const Ref<Var> i = var("i"), j = var("j");
  const auto block = [&](const char* name, const Ref<Buffer>& to, const Ref<Buffer>& from,
                         const std::function<Expr(Expr, Expr, const Ref<Buffer>&)>& value) {
    const Ref<Var> a = var("a"), b = var("b");
    Block::Parts parts;
    parts.name = name;
    parts.iter_vars = {{a, {int64(0), int64(4)}, IterKind::kSpatial},
                       {b, {int64(0), int64(5)}, IterKind::kSpatial}};
    parts.body = make<BufferStore>(to, value(a, b, from), std::vector<Expr>{a, b});
    return Stmt(make<BlockRealize>(std::vector<Expr>{i, j}, boolean(true),
                                   with_accesses(make<Block>(std::move(parts)))));
  };
  const Stmt write = block(
      "write", t, x, [](Expr a, Expr b, const Ref<Buffer>& from) { return load(from, {a, b}); });
  const Stmt read = block("read", y, t, [&](Expr a, Expr b, const Ref<Buffer>& from) {
    return before ? if_then_else(int64(1) <= a, load(from, {a - 1, floormod(b + 1, 5)}),
                                 imm(kFloat32, 0.0))
                  : load(from, {a, b});
  });
  return testing::function({x, y}, {t}, {nest({i, j}, to_exprs({4, 5}), seq({write, read}))});
}

TEST(Reorder, KeepsIterationsThatGiveValuesToOneAnother) {
  const auto swap = [](Schedule& sch) {
    sch.reorder({loop(sch, "write", 1), loop(sch, "write", 0)});
  };
  EXPECT_EQ(tried(from_row_to_row(false), swap), "accepted");
  EXPECT_EQ(tried(from_row_to_row(true), swap),
            "blocks below loop `j` use what others write in other iterations; these keep their "
            "order");
}

TEST(Parallel, RefusesIterationsThatGiveValuesToOneAnother) {
  const auto parallel = [](Schedule& sch) { sch.parallel(loop(sch, "write", 0)); };
  EXPECT_EQ(tried(from_row_to_row(false), parallel), "accepted");
  EXPECT_EQ(tried(from_row_to_row(true), parallel),
            "blocks below loop `i` use what others write in other iterations; it cannot be "
            "parallel");
  EXPECT_EQ(
      tried(from_row_to_row(true), [](Schedule& sch) { sch.vectorize(loop(sch, "write", 1)); }),
      "blocks below loop `j` use what others write in other iterations; it cannot be "
      "vectorized");
}

TEST(ComputeInline, RefusesWhatALaterIterationOverwrites) {
  // t takes the element that the next iteration overwrites.
  const auto x = tensor("x", std::vector<int64_t>{6}), t = tensor("t", std::vector<int64_t>{5});
  const auto y = tensor("y", t->shape);
  const Ref<Var> i = var("i");
  const auto block = [&](const char* name, const Ref<Buffer>& to,
                         const std::function<Expr(Expr)>& value) {
    const Ref<Var> a = var("a");
    Block::Parts parts;
    parts.name = name;
    parts.iter_vars = {{a, {int64(0), int64(5)}, IterKind::kSpatial}};
    parts.body = make<BufferStore>(to, value(a), std::vector<Expr>{a});
    return Stmt(make<BlockRealize>(std::vector<Expr>{i}, boolean(true),
                                   with_accesses(make<Block>(std::move(parts)))));
  };
  const Stmt both = seq({block("clear", x, [](Expr) { return imm(kFloat32, 0.0); }),
                         block("take", t, [&](Expr a) { return load(x, {a + 1}); })});
  const auto f =
      testing::function({x, y}, {t},
                        {nest({i}, to_exprs({5}), both),
                         compute("last", y, t->shape, [&](const Axes& v) { return load(t, v); })});
  EXPECT_EQ(tried(f, [](Schedule& sch) { sch.compute_inline(sch.get_block("take")); }),
            "block `clear` writes `x`, which `take` reads before");
}

TEST(DecomposePadding, RefusesABlockThatReadsWhatItWrites) {
  const auto y = tensor("y", std::vector<int64_t>{6});
  const auto f = testing::function({y}, {}, {compute("shift", y, y->shape, [&](const Axes& v) {
                                     return if_then_else(int64(1) <= v[0], load(y, {v[0] - 1}),
                                                         imm(kFloat32, 0.0));
                                   })});
  EXPECT_EQ(tried(f,
                  [](Schedule& sch) {
                    sch.decompose_padding(sch.get_block("shift"), loop(sch, "shift", 0));
                  }),
            "block `shift` reads what it writes to `y`");
}

}  // namespace
}  // namespace tenon::tir
