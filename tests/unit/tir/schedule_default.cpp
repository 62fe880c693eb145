// SPDX-License-Identifier: Apache-2.0
// The default schedule on each class of kernel, for both kinds of vector registers: the values
// stay, and the structure is what the class deserves.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "schedule_evaluate.h"
#include "schedule_kernels.h"
#include "tenon/tir/analysis/tree.h"
#include "tenon/tir/schedule/default_schedule.h"

namespace tenon::tir {
namespace {

using testing::compute;
using testing::dump;
using testing::function;
using testing::results;
using testing::tensor;

constexpr const char* kTargets[] = {"llvm -mcpu=haswell", "llvm -mcpu=skylake-avx512"};

Schedule check_schedule(const Ref<PrimFunc>& before, const std::string& target,
                        const testing::Env& symbols = {}) {
  Schedule schedule = schedule_by_default(before, parse_target(target));
  const PrimFunc& after = *schedule.func();
  const auto a = results(*before, symbols);
  std::vector<std::vector<double>> b;
  try {
    b = results(after, symbols);
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what() << "\n" << dump(after);
    return schedule;
  }
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t k = 0; k < a[i].size(); ++k)
      if (std::abs(a[i][k] - b[i][k]) > 1e-9) {
        ADD_FAILURE() << "buffer " << i << ", element " << k << ": " << a[i][k] << " and "
                      << b[i][k] << "\n"
                      << dump(after);
        return schedule;
      }
  return schedule;
}

/// Whether some block stands in a vectorised loop.
int count(const Schedule& schedule, ForKind kind) {
  int n = 0;
  walk<For>(schedule.func()->body, [&](const For& loop) { n += loop.kind == kind; });
  return n;
}
bool has_local(const Schedule& schedule) {
  bool found = false;
  walk<Buffer>(schedule.func()->body,
               [&](const Buffer& b) { found = found || b.scope == "local"; });
  return found;
}

TEST(DefaultSchedule, Dense) {
  for (const char* target : kTargets) {
    for (const bool plain : {false, true}) {
      const Schedule s = check_schedule(testing::dense(int64(29), 96, 24, 48, plain), target);
      EXPECT_TRUE(has_local(s)) << dump(*s.func());
      EXPECT_GT(count(s, ForKind::kVectorized), 2) << dump(*s.func());
    }
    check_schedule(testing::dense(int64(13), 70, 7, 32), target);
    check_schedule(testing::dense(int64(1), 100, 16, 64), target);
    check_schedule(testing::dense(int64(5), 20, 16, 32, true), target);
  }
}

// A prime number of rows: whole tiles in tasks of one size, and the rest.
TEST(DefaultSchedule, RowsThatNoNumberDivides) {
  for (const char* target : kTargets)
    for (const bool plain : {false, true}) {
      const int64_t panel = 3 * parse_target(target).vector_lanes(32);
      const auto dense = testing::dense(int64(197), 3 * panel, 64, panel, plain);
      const Schedule s = check_schedule(dense, target);
      EXPECT_EQ(count(s, ForKind::kParallel), 2) << dump(*s.func());
    }
}

// A sum of which an operand and the panels leave the second cache: chunks that add to its buffer,
// where sums may be taken in another order and there is room for one.
TEST(DefaultSchedule, LongSumsInChunks) {
  const auto steps = [](const Ref<PrimFunc>& f, const std::string& target, bool is_fast) {
    std::vector<BlockPlan> plans;
    Schedule schedule = schedule_by_default(f, parse_target(target), &plans, {}, is_fast);
    const auto a = results(*f, {}), b = results(*schedule.func(), {});
    for (size_t i = 0; i < a.size(); ++i)
      for (size_t k = 0; k < a[i].size(); ++k) EXPECT_NEAR(a[i][k], b[i][k], 1e-9);
    std::vector<int64_t> out;
    int64_t chunks = 1;
    for (const BlockPlan& plan : plans) {
      chunks = std::max(chunks, plan.chunks);
      for (const TilePlan& nest : plan.tiles) out.push_back(nest.k.back().extent);
    }
    EXPECT_EQ(chunks, static_cast<int64_t>(out.size()));
    return out;
  };
  using Steps = std::vector<int64_t>;
  for (const std::string target : kTargets)
    for (const bool plain : {false, true}) {
      const auto product = testing::dense(int64(31), 48, 2056, 48, plain)
                               ->with_attr(kLayoutFreeBuffers, std::vector<int64_t>{1});
      const std::string small = target + " -l2=262144";
      EXPECT_EQ(steps(product, small, true), (Steps{1024, 1032}));
      EXPECT_EQ(steps(product, small, false), Steps{2056});
      EXPECT_EQ(steps(product, target + " -l2=2097152", true), Steps{2056});
      // Only a reader leaves the sum in memory of its own.
      const auto cramped = product->with_attr(kScratchRoom, int64_t{31 * 48 * 4 - 1});
      EXPECT_EQ(steps(cramped, small, true).size(), plain ? 2 : 1);
    }
}

// Two whole panels do not fit in the second cache, those of a chunk do.
TEST(DefaultSchedule, ChunksPrefetchTheirPartOfAPanel) {
  const auto prefetches = [](const Ref<PrimFunc>& product, const std::string& target,
                             bool is_fast) {
    std::vector<BlockPlan> plans;
    Schedule schedule = schedule_by_default(product, parse_target(target), &plans, {}, is_fast);
    std::vector<bool> out;
    for (const BlockPlan& plan : plans)
      for (const TilePlan& nest : plan.tiles) out.push_back(nest.prefetches);
    EXPECT_EQ(out.size() > 1, is_fast) << target;
    const bool has_hints = dump(*schedule.func()).find("prefetch") != std::string::npos;
    EXPECT_EQ(has_hints, out.at(0)) << target;
    return std::find(out.begin(), out.end(), false) == out.end();
  };
  for (const auto& [target, panel] : {std::pair("llvm -mcpu=haswell -l2=262144", 24),
                                      std::pair("llvm -mcpu=skylake-avx512 -l2=1048576", 64)}) {
    const auto product = testing::dense(int64(31), 4 * panel, 2056, panel)
                             ->with_attr(kLayoutFreeBuffers, std::vector<int64_t>{1});
    EXPECT_TRUE(prefetches(product, target, true)) << target;
    EXPECT_FALSE(prefetches(product, target, false)) << target;
  }
}

// Up to four where columns are whole panels, up to two elsewhere.
TEST(DefaultSchedule, SumsOfWholePanelsInMoreChunks) {
  const auto chunks = [](int64_t columns) {
    const auto product = testing::dense(int64(24), columns, 2056, columns)
                             ->with_attr(kLayoutFreeBuffers, std::vector<int64_t>{1});
    std::vector<BlockPlan> plans;
    const Target target = parse_target("llvm -mcpu=skylake-avx512 -l2=262144");
    const Schedule schedule = schedule_by_default(product, target, &plans, {}, true);
    const auto a = results(*product, {}), b = results(*schedule.func(), {});
    for (size_t i = 0; i < a.size(); ++i)
      for (size_t k = 0; k < a[i].size(); ++k) EXPECT_NEAR(a[i][k], b[i][k], 1e-9);
    int64_t most = 1;
    for (const BlockPlan& plan : plans) most = std::max(most, plan.chunks);
    return most;
  };
  EXPECT_EQ(chunks(64), 4);
  EXPECT_EQ(chunks(48), 2);
}

// Chunks of input channels where a panel of filters is larger than the second cache, and a chunk of the
// picture is not; where a form of Winograd's is taken, it has the sum whole.
TEST(DefaultSchedule, LongConvolutionsInChunks) {
  const auto chunks = [](testing::Conv conv, const std::string& target, bool is_fast = true) {
    conv.kernel = 3;
    conv.pad = 1;
    const auto f = testing::conv(conv)
                       ->with_attr(kLayoutFreeBuffers, std::vector<int64_t>{1})
                       ->with_attr(kScratchRoom, int64_t{1} << 22);
    std::vector<BlockPlan> plans;
    Schedule schedule = schedule_by_default(f, parse_target(target), &plans, {}, is_fast);
    int64_t most = 1, blocks = 0;
    bool has_form = false;
    for (const BlockPlan& plan : plans) {
      most = std::max(most, plan.chunks);
      blocks += !plan.tiles.empty();
      has_form |= plan.winograd.has_value();
    }
    if (has_form) return int64_t{0};
    EXPECT_EQ(blocks, most);
    if (most == 1) return most;
    const auto a = results(*f, {}), b = results(*schedule.func(), {});
    for (size_t i = 0; i < a.size(); ++i)
      for (size_t k = 0; k < a[i].size(); ++k) EXPECT_NEAR(a[i][k], b[i][k], 1e-9);
    return most;
  };
  for (const std::string target : kTargets) {
    const int64_t v = parse_target(target).vector_lanes(32);
    const testing::Conv layer{.ic = 128, .oc = 32, .h = 10, .w = 10, .stride = 2, .v = v};
    EXPECT_EQ(chunks(layer, target + " -l2=65536"), 2) << target;
    EXPECT_EQ(chunks(layer, target + " -l2=65536", false), 1) << target;
    const testing::Conv large{.ic = 128, .oc = 32, .h = 21, .w = 21, .stride = 2, .v = v};
    EXPECT_EQ(chunks(large, target + " -l2=65536"), 1) << target;
    // A panel of 1152 steps fits in it, the picture does not fit beside two.
    const testing::Conv wide{.ic = 128, .oc = 32, .h = 9, .w = 81, .stride = 2, .v = v};
    EXPECT_EQ(chunks(wide, target + (v == 8 ? " -l2=327680" : " -l2=655360")), 1) << target;
    const testing::Conv few{.ic = 128, .oc = 32, .h = 8, .w = 8, .stride = 2, .v = v};
    EXPECT_EQ(chunks(few, target + " -l2=65536"), 1) << target;
    const testing::Conv dense{.ic = 128, .oc = 32, .h = 24, .w = 24, .v = v};
    EXPECT_EQ(chunks(dense, target + " -l2=262144"), 0) << target;
    EXPECT_EQ(chunks(dense, target + " -l2=262144", false), 1) << target;
  }
}

// The rows' operand has blocks of 32 channels, the filters have blocks of 16: no chunk begins in the
// middle of 32.
TEST(DefaultSchedule, ChunksOfWholeBlocksOfChannels) {
  using testing::tensor;
  const auto x = tensor("x", {33, 13, 5, 32}), w = tensor("w", {66, 3, 16, 32});
  const auto out = tensor("out", {5, 5, 32});
  const auto f = testing::function({x, w, out}, {},
                                   {testing::compute(
                                       "conv", out, to_exprs({5, 5, 32, 66, 3, 16}),
                                       [&](const std::vector<Expr>& v) {
                                         return load(x, {floordiv(v[3], 2), v[0] * 2 + v[4], v[1],
                                                         floormod(v[3], 2) * 16 + v[5]}) *
                                                load(w, {v[3], v[4], v[5], v[2]});
                                       },
                                       3)})
                     ->with_attr(kLayoutFreeBuffers, std::vector<int64_t>{1});
  std::vector<BlockPlan> plans;
  const Target target = parse_target("llvm -mcpu=haswell -l2=131072");
  const Schedule schedule = schedule_by_default(f, target, &plans, {}, true);
  std::vector<size_t> nests;
  for (const BlockPlan& plan : plans)
    if (plan.algorithm != BlockPlan::Algorithm::kElementwise) nests.push_back(plan.tiles.size());
  EXPECT_EQ(nests, (std::vector<size_t>{1, 1, 1, 1}));  // all in tiles
  const auto a = results(*f, {}), b = results(*schedule.func(), {});
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t k = 0; k < a[i].size(); ++k) EXPECT_NEAR(a[i][k], b[i][k], 1e-9);
}

// A filter of one channel has taps alone, which are cut.
TEST(DefaultSchedule, LongFiltersOfOneChannelInChunks) {
  using testing::tensor;
  const auto x = tensor("x", std::vector<int64_t>{2152}), w = tensor("w", {2056, 32});
  const auto out = tensor("out", {25, 32});
  const auto f = testing::function({x, w, out}, {},
                                   {testing::compute(
                                       "fir", out, to_exprs({25, 32, 2056}),
                                       [&](const std::vector<Expr>& v) {
                                         return load(x, {v[0] * 4 + v[2]}) * load(w, {v[2], v[1]});
                                       },
                                       1)})
                     ->with_attr(kLayoutFreeBuffers, std::vector<int64_t>{1});
  std::vector<BlockPlan> plans;
  const Target target = parse_target("llvm -mcpu=haswell -l2=262144");
  const Schedule schedule = schedule_by_default(f, target, &plans, {}, true);
  int64_t chunks = 1, blocks = 0;
  for (const BlockPlan& plan : plans) {
    chunks = std::max(chunks, plan.chunks);
    blocks += !plan.tiles.empty();
  }
  EXPECT_EQ(chunks, 4);
  EXPECT_EQ(blocks, 4);
  const auto a = results(*f, {}), b = results(*schedule.func(), {});
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t k = 0; k < a[i].size(); ++k) EXPECT_NEAR(a[i][k], b[i][k], 1e-9);
}

// One accumulator, or a few, wait for themselves: chunks are independent of each other, of 16 steps at least.
TEST(DefaultSchedule, FewSumsInChunks) {
  const auto chunks = [](const std::string& target, int64_t rows, int64_t columns, int64_t steps) {
    const auto product = testing::dense(int64(rows), columns, steps, columns)
                             ->with_attr(kLayoutFreeBuffers, std::vector<int64_t>{1});
    std::vector<BlockPlan> plans;
    Schedule schedule = schedule_by_default(product, parse_target(target), &plans, {}, true);
    const auto a = results(*product, {}), b = results(*schedule.func(), {});
    for (size_t i = 0; i < a.size(); ++i)
      for (size_t k = 0; k < a[i].size(); ++k) EXPECT_NEAR(a[i][k], b[i][k], 1e-9);
    int64_t most = 1;
    for (const BlockPlan& plan : plans) most = std::max(most, plan.chunks);
    return most;
  };
  for (const std::string target :
       {"llvm -mcpu=x86-64-v2", "llvm -mcpu=haswell", "llvm -mcpu=skylake-avx512",
        "llvm -vector-bits=512 -vector-registers=16"}) {
    const int64_t lanes = parse_target(target).vector_lanes(32);
    EXPECT_EQ(chunks(target, 1, lanes, 256), 8) << target;
    EXPECT_EQ(chunks(target, 1, lanes - 1, 64), 4) << target;
    EXPECT_EQ(chunks(target, 1, lanes, 31), 1) << target;
    EXPECT_EQ(chunks(target, 2, lanes, 64), 4) << target;
    EXPECT_EQ(chunks(target, 1, 2 * lanes, 48), 3) << target;
    EXPECT_EQ(chunks(target, 1, 3 * lanes, 256), 1) << target;
    EXPECT_EQ(chunks(target, 1, 8 * lanes, 64), 1) << target;
    EXPECT_EQ(chunks(target, 5, lanes, 64), 1) << target;
  }
}

TEST(DefaultSchedule, AnUnknownNumberOfSumsHasNoChunks) {
  const Ref<Var> n = Var::size("n");
  const auto x = tensor("x", std::vector<int64_t>{1, 64}), w = tensor("w", {int64(64), n}),
             y = tensor("y", {int64(1), n});
  const auto f =
      function(
          {x, w, y}, {},
          {compute(
              "product", y, {int64(1), n, int64(64)},
              [&](const auto& v) { return load(x, {v[0], v[2]}) * load(w, {v[2], v[1]}); }, 1)})
          ->with_attr(kLayoutFreeBuffers, std::vector<int64_t>{1});
  for (const char* target : kTargets) {
    std::vector<BlockPlan> plans;
    schedule_by_default(f, parse_target(target), &plans, {}, true);
    for (const BlockPlan& plan : plans) EXPECT_EQ(plan.chunks, 1);
  }
}

// A product of two vectors has a result without axes: it has no columns, so it is no such sum.
TEST(DefaultSchedule, ASumWithoutAxesHasNoChunks) {
  const auto x = tensor("x", std::vector<int64_t>{4096}),
             w = tensor("w", std::vector<int64_t>{4096});
  const auto y = tensor("y", std::vector<int64_t>{});
  const auto f = function({x, w, y}, {},
                          {compute(
                              "dot", y, {int64(4096)},
                              [&](const auto& v) { return load(x, {v[0]}) * load(w, {v[0]}); }, 1)})
                     ->with_attr(kLayoutFreeBuffers, std::vector<int64_t>{1});
  for (const char* target : kTargets) {
    std::vector<BlockPlan> plans;
    schedule_by_default(f, parse_target(std::string(target) + " -l2=16384"), &plans, {}, true);
    for (const BlockPlan& plan : plans) EXPECT_EQ(plan.chunks, 1);
  }
}

/// The same without init: it adds to what stands in its output.
Ref<PrimFunc> without_init(const Ref<PrimFunc>& f) {
  return f->with_body(rewrite(f->body, [](const NodePtr& node) -> std::optional<NodePtr> {
    const auto* block = node.as<Block>();
    if (!block || !block->init) return std::nullopt;
    Block::Parts parts = block->parts();
    parts.init = {};
    parts.reads.push_back(parts.writes.at(0));
    return NodePtr(make<Block>(std::move(parts), block->origin));
  }));
}

TEST(DefaultSchedule, PartialSumsAreScheduledLikeSums) {
  for (const char* target : kTargets) {
    for (const int64_t rows : {1, 5, 29, 96}) {
      const auto f = testing::dense(int64(rows), 96, 24, 48, true);
      const Schedule sum = check_schedule(f, target),
                     part = check_schedule(without_init(f), target);
      EXPECT_TRUE(has_local(part)) << dump(*part.func());
      EXPECT_EQ(count(part, ForKind::kVectorized), count(sum, ForKind::kVectorized));
      // Nothing but the registers holds the partial sums.
      EXPECT_EQ(root_block(*part.func())->alloc_buffers.size(),
                root_block(*sum.func())->alloc_buffers.size())
          << dump(*part.func());
    }
    check_schedule(without_init(testing::dense(int64(13), 70, 7, 32, true)), target);
  }
}

// What no schedule is for keeps its author's form: no buffer is added in vain.
TEST(DefaultSchedule, PartialSumsThatNothingSuitsStay) {
  const auto x = tensor("x", std::vector<int64_t>{7, 40}), y = tensor("y", std::vector<int64_t>{7});
  const auto f =
      without_init(function({x, y}, {},
                            {compute(
                                "spread", y, {int64(7), int64(5)},
                                [&](const auto& v) { return load(x, {v[0], v[1] * v[1]}); }, 1)}));
  for (const char* target : kTargets) {
    const Schedule s = check_schedule(f, target);
    EXPECT_TRUE(root_block(*s.func())->alloc_buffers.empty()) << dump(*s.func());
  }
}

TEST(DefaultSchedule, DenseOfSymbolicRows) {
  const Ref<Var> m = Var::size("m");
  const auto f = testing::dense(m, 96, 8, 48);
  for (const char* target : kTargets)
    for (const int64_t rows : {1, 6, 17, 31}) {
      const Schedule s = check_schedule(f, target, {{m.get(), rows}});
      EXPECT_TRUE(has_local(s)) << dump(*s.func());
    }
}

TEST(DefaultSchedule, ProductsOfSymbolicSizes) {
  const Ref<Var> m = Var::size("m"), n = Var::size("n");
  for (const char* target : kTargets)
    for (const bool scores : {false, true}) {
      const auto f = testing::batched(2, m, n, int64(6), scores);
      for (const auto& [rows, columns] : {std::pair{1, 1}, {5, 16}, {9, 23}, {30, 45}})
        check_schedule(f, target, {{m.get(), rows}, {n.get(), columns}});
      // Nothing is left of it that is not in registers.
      const Schedule s = schedule_by_default(f, parse_target(target));
      walk<BufferStore>(s.func()->body, [&](const BufferStore& store) {
        walk<Binary>(store.value, [&](const Binary& op) {
          if (op.op == BinaryOp::kMul && op.dtype == kFloat32)
            EXPECT_EQ(store.buffer->scope, "local") << dump(*s.func());
        });
      });
    }
}

TEST(DefaultSchedule, ElementwiseOfWholeVectorsHasNoRest) {
  const Ref<Var> m = Var::size("m");
  for (const char* target : kTargets)
    for (const int64_t columns : {64, 65}) {
      const auto x = tensor("x", {m, int64(columns)}), y = tensor("y", {m, int64(columns)});
      const auto f =
          function({x, y}, {}, {compute("y", y, y->shape, [&](const std::vector<Expr>& i) {
                     return load(x, i) * load(x, i);
                   })});
      for (const int64_t rows : {1, 7}) {
        const Schedule s = check_schedule(f, target, {{m.get(), rows}});
        int blocks = 0;
        walk<Block>(s.func()->body, [&](const Block& block) { blocks += block.name != "root"; });
        EXPECT_EQ(blocks, columns == 64 ? 1 : 2) << dump(*s.func());
      }
    }
}

TEST(DefaultSchedule, ConvolutionOfSymbolicSizes) {
  const Ref<Var> batch = Var::size("batch"), height = Var::size("h"), width = Var::size("w");
  for (const char* target : kTargets) {
    const int64_t v = parse_target(target).vector_lanes();
    const auto x = tensor("x", {batch, int64(2), height, width, int64(v)});
    const auto p = tensor("p", {batch, int64(2), height + 2, width + 2, int64(v)});
    const auto w = tensor("w", {2, 3, 3, v, 2 * v});
    const auto out = tensor("out", {batch, int64(2), height, width, int64(v)});
    const auto padded = [&](const std::vector<Expr>& i) {
      const Expr y = i[2] - 1, z = i[3] - 1;
      const Expr inside = logical_and(logical_and(int64(0) <= y, y < Expr(height)),
                                      logical_and(int64(0) <= z, z < Expr(width)));
      return if_then_else(inside, load(x, {i[0], i[1], y, z, i[4]}), imm(kFloat32, 0.0));
    };
    const auto term = [&](const std::vector<Expr>& i) {
      return load(p, {i[0], i[5], i[2] + i[6], i[3] + i[7], i[8]}) *
             load(w, {i[5], i[6], i[7], i[8], i[1] * v + i[4]});
    };
    const std::vector<Expr> extents = {batch,    int64(2), height,   width,   int64(v),
                                       int64(2), int64(3), int64(3), int64(v)};
    const Stmt pad = compute("pad", p, p->shape, padded);
    const Stmt conv = compute("conv", out, extents, term, 4);
    const auto f = function({x, w, out}, {p}, {pad, conv});
    for (const auto& [n, h, c] : {std::tuple{1, 1, 1}, {2, 4, 9}, {1, 5, 15}}) {
      const Schedule s =
          check_schedule(f, target, {{batch.get(), n}, {height.get(), h}, {width.get(), c}});
      EXPECT_TRUE(has_local(s)) << dump(*s.func());
    }
  }
}

TEST(DefaultSchedule, Convolution) {
  for (const char* target : kTargets) {
    const int64_t v = parse_target(target).vector_lanes();
    for (const bool residual : {false, true}) {
      const Schedule s = check_schedule(testing::conv({.ic = v,
                                                       .oc = 2 * v,
                                                       .h = 5,
                                                       .w = 7,
                                                       .kernel = 3,
                                                       .pad = 1,
                                                       .v = v,
                                                       .group = 2,
                                                       .residual = residual}),
                                        target);
      EXPECT_TRUE(has_local(s)) << dump(*s.func());
    }
    const Schedule flat =
        check_schedule(testing::conv({.ic = v, .oc = 4 * v, .h = 7, .w = 7, .v = v}), target);
    EXPECT_TRUE(has_local(flat)) << dump(*flat.func());
    check_schedule(
        testing::conv(
            {.ic = v, .oc = 3 * v, .h = 8, .w = 9, .kernel = 3, .stride = 2, .pad = 1, .v = v}),
        target);
    check_schedule(testing::conv({.ic = v, .oc = v, .h = 8, .w = 8, .stride = 2, .v = v}), target);
  }
}

// Numbers of blocks that only narrow tiles divide: wider tiles, and others that are narrower by one vector.
TEST(DefaultSchedule, ConvolutionOfAPrimeNumberOfBlocks) {
  for (const char* target : kTargets) {
    const int64_t v = parse_target(target).vector_lanes();
    int64_t apart = 0;
    for (const int64_t blocks : {5, 7, 11, 17})
      for (const int64_t stride : {1, 2}) {
        const Schedule s = check_schedule(testing::conv({.ic = v,
                                                         .oc = blocks * v,
                                                         .h = 9,
                                                         .w = 9,
                                                         .stride = stride,
                                                         .v = v,
                                                         .residual = stride == 1}),
                                          target);
        EXPECT_TRUE(has_local(s)) << dump(*s.func());
        for (const BlockRV& block : s.blocks()) apart += block.name == "conv_1";
      }
    EXPECT_GT(apart, 0) << target;
  }
}

// 1.5 blocks of input channels: three halves are summed, and no test stands among the products.
TEST(DefaultSchedule, ConvolutionOfHalfABlock) {
  for (const char* target : kTargets) {
    const int64_t v = parse_target(target).vector_lanes(), half = v / 2;
    const auto x = tensor("x", {1, 2, 6, 8, v}), w = tensor("w", {3, 3, 3, half, v});
    const auto out = tensor("out", {1, 1, 4, 6, v});
    const auto conv =
        function({x, w, out}, {},
                 {compute(
                     "conv", out, to_exprs({1, 1, 4, 6, v, 3, 3, 3, half}),
                     [&](const std::vector<Expr>& i) {
                       return load(x, {i[0], floordiv(i[5], 2), i[2] + i[6], i[3] + i[7],
                                       floormod(i[5], 2) * half + i[8]}) *
                              load(w, {i[5], i[6], i[7], i[8], i[4]});
                     },
                     4)});
    const Schedule s = check_schedule(conv, target);
    EXPECT_TRUE(has_local(s)) << dump(*s.func());
    for (const BlockRV& block : s.blocks())
      EXPECT_TRUE(is_int(s.realize(block)->predicate, 1)) << dump(*s.func());
  }
}

// 19 columns in one tile, where no smaller number divides the width: padding goes by tiles then.
TEST(DefaultSchedule, DepthwiseOfAnOddWidth) {
  const char* target = kTargets[1];
  const int64_t v = parse_target(target).vector_lanes();
  const auto x = tensor("x", {1, 1, 4, 57, v}), w = tensor("w", {1, 3, v});
  const auto out = tensor("out", {1, 1, 4, 57, v});
  const auto padded = tensor("padded", {1, 1, 4, 59, v});
  const auto depthwise =
      function({x, w, out}, {padded},
               {compute("padded", padded, to_exprs({1, 1, 4, 59, v}),
                        [&](const std::vector<Expr>& i) {
                          return if_then_else(logical_and(int64(0) < i[3], i[3] < int64(58)),
                                              load(x, {i[0], i[1], i[2], i[3] - 1, i[4]}),
                                              imm(kFloat32, 0.0));
                        }),
                compute(
                    "depthwise", out, to_exprs({1, 1, 4, 57, v, 3}),
                    [&](const std::vector<Expr>& i) {
                      return load(padded, {i[0], i[1], i[2], i[3] + i[5], i[4]}) *
                             load(w, {i[1], i[5], i[4]});
                    },
                    1)});
  const Schedule s = check_schedule(depthwise, target);
  EXPECT_NE(dump(*s.func()).find("in 0, 21"), std::string::npos) << dump(*s.func());
}

TEST(DefaultSchedule, DepthwiseAndPooling) {
  for (const char* target : kTargets) {
    const int64_t v = parse_target(target).vector_lanes();
    const auto x = tensor("x", {1, 2, 11, 11, v}), w = tensor("w", {2, 3, 3, v});
    const auto out = tensor("out", {1, 2, 9, 9, v});
    const auto depthwise =
        function({x, w, out}, {},
                 {compute(
                     "depthwise", out, to_exprs({1, 2, 9, 9, v, 3, 3}),
                     [&](const std::vector<Expr>& i) {
                       return load(x, {i[0], i[1], i[2] + i[5], i[3] + i[6], i[4]}) *
                              load(w, {i[1], i[5], i[6], i[4]});
                     },
                     2)});
    const Schedule s = check_schedule(depthwise, target);
    EXPECT_TRUE(has_local(s)) << dump(*s.func());
    const auto pooled = tensor("pooled", {1, 2, 5, 5, v});
    const auto pool =
        function({x, pooled}, {},
                 {compute(
                     "pool", pooled, to_exprs({1, 2, 5, 5, v, 3, 3}),
                     [&](const std::vector<Expr>& i) {
                       return load(x, {i[0], i[1], i[2] * 2 + i[5], i[3] * 2 + i[6], i[4]});
                     },
                     2, BinaryOp::kMax, -100)});
    const Schedule p = check_schedule(pool, target);
    EXPECT_TRUE(has_local(p)) << dump(*p.func());
    const auto mean = tensor("mean", {1, 2, 1, 1, v});
    const auto element = [&](const std::vector<Expr>& i) {
      return load(x, {i[0], i[1], i[5], i[6], i[4]});
    };
    const auto extents = to_exprs({1, 2, 1, 1, v, 11, 11});
    const auto global = function({x, mean}, {}, {compute("global", mean, extents, element, 2)});
    EXPECT_TRUE(has_local(check_schedule(global, target)));
  }
}

Ref<PrimFunc> softmax(Expr rows, Expr n) {
  const auto x = tensor("x", {rows, n}), out = tensor("out", {rows, n}), e = tensor("e", {rows, n});
  const auto most = tensor("most", std::vector<Expr>{rows}),
             sum = tensor("sum", std::vector<Expr>{rows});
  return function(
      {x, out}, {most, e, sum},
      {compute(
           "most", most, {rows, n}, [&](const std::vector<Expr>& i) { return load(x, i); }, 1,
           BinaryOp::kMax, -1e30),
       compute("e", e, {rows, n},
               [&](const std::vector<Expr>& i) {
                 return call(IntrinsicId::kExp, {load(x, i) - load(most, {i[0]})});
               }),
       compute(
           "sum", sum, {rows, n}, [&](const std::vector<Expr>& i) { return load(e, i); }, 1),
       compute("divide", out, {rows, n},
               [&](const std::vector<Expr>& i) { return load(e, i) / load(sum, {i[0]}); })});
}

TEST(DefaultSchedule, RowsStayTogether) {
  for (const char* target : kTargets) {
    for (const int64_t n : {64, 50}) {
      const Schedule s = check_schedule(softmax(int64(6), int64(n)), target);
      int nests = 1;
      if (const auto* list = root_block(*s.func())->body.as<Seq>())
        nests = static_cast<int>(list->stmts.size());
      EXPECT_EQ(nests, 1) << dump(*s.func());
      EXPECT_GE(count(s, ForKind::kVectorized), 4) << dump(*s.func());
    }
    const Ref<Var> n = Var::size("n"), rows = Var::size("rows");
    for (const int64_t size : {5, 37})
      check_schedule(softmax(rows, n), target, {{n.get(), size}, {rows.get(), 3}});
  }
}

// `scale` has one value a row: no loop of it may become a vector of whole rows.
TEST(DefaultSchedule, LoopsOverRowsAreNoVectors) {
  const auto x = tensor("x", {591, 197}), out = tensor("out", {591, 197}),
             sum = tensor("squares", std::vector<int64_t>{591}),
             scale = tensor("scale", std::vector<int64_t>{591});
  const Ref<PrimFunc> kernel = function(
      {x, out}, {sum, scale},
      {compute(
           "squares", sum, {int64(591), int64(197)},
           [&](const std::vector<Expr>& i) { return load(x, i) * load(x, i); }, 1),
       compute("scale", scale, scale->shape,
               [&](const std::vector<Expr>& i) { return imm(kFloat32, 1.0) / load(sum, i); }),
       compute("out", out, out->shape, [&](const std::vector<Expr>& i) {
         return call(IntrinsicId::kExp, {load(x, i) * load(scale, {i[0]})});
       })});
  for (const char* target : kTargets) {
    const Schedule s = check_schedule(kernel, target);
    EXPECT_GT(count(s, ForKind::kVectorized), 0) << dump(*s.func());
    walk<For>(s.func()->body, [&](const For& loop) {
      if (loop.kind != ForKind::kVectorized) return;
      walk<For>(loop.body, [&](const For& inner) {
        ADD_FAILURE() << target << ": loop over " << inner.loop_var->name << " in a vector\n"
                      << dump(*s.func());
      });
    });
  }
}

TEST(DefaultSchedule, Elementwise) {
  for (const char* target : kTargets) {
    const auto x = tensor("x", {3, 5, 37}), y = tensor("y", {1, 5, 1});
    const auto out = tensor("out", {3, 5, 37});
    const Schedule s =
        check_schedule(function({x, y, out}, {},
                                {compute("add", out, out->shape,
                                         [&](const std::vector<Expr>& i) {
                                           return load(x, i) + load(y, {int64(0), i[1], int64(0)});
                                         })}),
                       target);
    EXPECT_GT(count(s, ForKind::kVectorized), 0) << dump(*s.func());
    const Schedule flat = check_schedule(
        function({x, out}, {},
                 {compute("relu", out, out->shape,
                          [&](const std::vector<Expr>& i) { return testing::relu(load(x, i)); })}),
        target);
    EXPECT_GT(count(flat, ForKind::kVectorized), 0) << dump(*flat.func());
    const auto t = tensor("t", {37, 5, 3});
    const auto element = [&](const std::vector<Expr>& i) { return load(x, {i[2], i[1], i[0]}); };
    const Stmt transpose = compute("transpose", t, t->shape, element);
    check_schedule(function({x, t}, {}, {transpose}), target);
    const auto p = tensor("p", {3, 7, 40});
    check_schedule(
        function({x, p}, {},
                 {compute("pad", p, p->shape,
                          [&](const std::vector<Expr>& i) {
                            const Expr inside =
                                logical_and(logical_and(int64(1) <= i[1], i[1] < int64(6)),
                                            logical_and(int64(2) <= i[2], i[2] < int64(39)));
                            return if_then_else(inside, load(x, {i[0], i[1] - 1, i[2] - 2}),
                                                imm(kFloat32, 0.0));
                          })}),
        target);
  }
}

TEST(DefaultSchedule, ProductsOfTwoVariables) {
  for (const char* target : kTargets) {
    const auto q = tensor("q", {2, 7, 16}), k = tensor("k", {2, 19, 16}),
               s = tensor("s", {2, 7, 19});
    const Schedule scores = check_schedule(function({q, k, s}, {},
                                                    {compute(
                                                        "scores", s, to_exprs({2, 7, 19, 16}),
                                                        [&](const std::vector<Expr>& i) {
                                                          return load(q, {i[0], i[1], i[3]}) *
                                                                 load(k, {i[0], i[2], i[3]});
                                                        },
                                                        1)}),
                                           target);
    EXPECT_TRUE(has_local(scores)) << dump(*scores.func());
    const auto v = tensor("v", {2, 19, 32}), o = tensor("o", {2, 7, 32});
    const Schedule values = check_schedule(function({s, v, o}, {},
                                                    {compute(
                                                        "values", o, to_exprs({2, 7, 32, 19}),
                                                        [&](const std::vector<Expr>& i) {
                                                          return load(s, {i[0], i[1], i[3]}) *
                                                                 load(v, {i[0], i[3], i[2]});
                                                        },
                                                        1)}),
                                           target);
    EXPECT_TRUE(has_local(values)) << dump(*values.func());
  }
}

TEST(DefaultSchedule, PanelsBeyondTheCacheArePrefetched) {
  const auto hints = [](const Schedule& schedule) {
    int n = 0;
    walk<Call>(schedule.func()->body,
               [&](const Call& call) { n += call.is(IntrinsicId::kPrefetch); });
    return n;
  };
  const auto f = testing::dense(int64(29), 96, 64, 24);
  const Schedule s = check_schedule(f, "llvm -mcpu=haswell -l2=20480");
  EXPECT_GT(hints(s), 0) << dump(*s.func());
  EXPECT_TRUE(structural_equal(replay(s.trace(), f).func(), s.func()));
  EXPECT_EQ(hints(check_schedule(f, "llvm -mcpu=haswell")), 0);
}

// The pieces of a panel's tiles ask for different lines of the next one, all together for every line.
TEST(DefaultSchedule, TilesShareOutTheLinesOfAPanel) {
  for (const char* text : kTargets)
    for (const int64_t size : {7, 13}) {
      SCOPED_TRACE(fmt::format("{} on {}", text, size));
      const Target target = parse_target(text);
      const int64_t lanes = target.vector_lanes(32), channels = lanes * lanes;
      const auto f = testing::conv({channels, channels, size, size, 3, 1, 1, lanes, 2});
      const Schedule sch = schedule_by_default(f, target);
      std::map<const Var*, int64_t> extents;
      walk<For>(sch.func()->body, [&](const For& loop) {
        extents[loop.loop_var.get()] = as_int(loop.extent).value_or(0);
      });
      std::set<int64_t> asked;
      int64_t runs = 0;
      for (const Instruction& step : sch.trace().instructions()) {
        if (step.name != "prefetch_spread") continue;
        const auto number = [&](std::string_view key) {
          for (const auto& [name, value] : step.attrs)
            if (name == key) return *value.as<int64_t>();
          return int64_t{-1};
        };
        if (runs > 0) EXPECT_EQ(number("runs"), runs);
        runs = number("runs");
        // Tasks of rows that stand inside of the panels are iterations of one loop with them.
        const LoopRV ahead = std::get<LoopRV>(step.inputs.at(2)),
                     over = std::get<LoopRV>(step.inputs.at(3));
        const int64_t passes = over == ahead ? number("distance") : extents.at(over.var.get());
        for (int64_t i = 0; i < passes; ++i) asked.insert((number("first") + i) % runs);
      }
      EXPECT_GT(runs, 1) << dump(*sch.func());
      EXPECT_EQ(static_cast<int64_t>(asked.size()), runs);
    }
}

// Tasks that share out the lines of a panel run the tiles of all pieces: only one of these asks for a line.
TEST(DefaultSchedule, TilesOfATaskDoNotRepeatHints) {
  testing::Conv conv{1536, 128, 8, 8, 1};
  conv.v = 16;
  conv.group = 4;
  const Schedule sch = schedule_by_default(testing::conv(conv),
                                           parse_target("llvm -mcpu=skylake-avx512 -l2=1048576"));
  std::set<int64_t> firsts;
  std::set<std::string> pieces;
  for (const Instruction& step : sch.trace().instructions()) {
    if (step.name != "prefetch_spread") continue;
    // Others are hints of inputs.
    if (!(std::get<LoopRV>(step.inputs.at(2)) == std::get<LoopRV>(step.inputs.at(3)))) continue;
    pieces.insert(std::get<BlockRV>(step.inputs.at(0)).name);
    for (const auto& [name, value] : step.attrs)
      if (name == "first") EXPECT_TRUE(firsts.insert(*value.as<int64_t>()).second);
  }
  EXPECT_GT(pieces.size(), 1) << dump(*sch.func());
}

TEST(DefaultSchedule, TraceReplays) {
  const auto f = testing::dense(int64(29), 96, 24, 48);
  const Schedule s = schedule_by_default(f, parse_target(kTargets[1]));
  EXPECT_TRUE(structural_equal(replay(s.trace(), f).func(), s.func()));
}

TEST(DefaultSchedule, LeavesScheduledFunctionsAlone) {
  IRModule module;
  const auto f = testing::dense(int64(29), 96, 24, 48)->with_attr("tir.is_scheduled", true);
  module.set("f", f);
  module.set("g", testing::dense(int64(29), 96, 24, 48));
  module = default_schedule(module);
  EXPECT_TRUE(module.find("f").same_as(f));
  EXPECT_TRUE(module.find<PrimFunc>("g")->attrs.flag("tir.is_scheduled"));
}

}  // namespace
}  // namespace tenon::tir
