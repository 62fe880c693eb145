// SPDX-License-Identifier: Apache-2.0
// Blocks moved into each other's loops at random places: refused, or the same results.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>

#include "planted.h"
#include "schedule_evaluate.h"

namespace tenon::tir {
namespace {

using testing::Axes;
using testing::compute;
using testing::dump;
using testing::Random;
using testing::results;
using testing::tensor;

/// A producer of t, sometimes one of u, and one or two consumers of them; of `n` rows.
Ref<PrimFunc> kernel(Random& random, const Expr& n) {
  const int64_t m = random.from(2, 7), k = random.from(2, 5);
  const Expr some = int64(m);
  const auto x = tensor("x", std::vector<Expr>{n + 2, int64(m + 2), int64(k)});
  const auto t = tensor("t", std::vector<Expr>{n, some}), u = tensor("u", t->shape);
  const auto y = tensor("y", std::vector<Expr>{n, some}), z = tensor("z", t->shape);
  const auto transposed = tensor("w", std::vector<Expr>{some, n});
  const auto rows = tensor("r", std::vector<Expr>{n});
  const auto flat = tensor("f", std::vector<Expr>{n * m});
  const auto half = tensor("h", std::vector<Expr>{floordiv(n + 1, 2), some});
  std::vector<Stmt> stmts;
  std::vector<Ref<Buffer>> params{x, y, z, transposed, rows, flat, half};
  std::vector<Ref<Buffer>> allocs{t, u};
  const auto whole = std::vector<Expr>{n, some};
  const bool has_u = random.coin();
  switch (random.below(5)) {
    case 0:
      stmts.push_back(compute("first", t, whole, [&](const Axes& v) {
        return load(x, {v[0], v[1], int64(0)}) + load(x, {v[0] + 1, v[1] + 2, int64(1)});
      }));
      break;
    case 1:
      stmts.push_back(compute(
          "first", t, std::vector<Expr>{n, some, int64(k)},
          [&](const Axes& v) { return load(x, v); }, 1));
      break;
    case 2:
      stmts.push_back(compute("first", t, whole, [&](const Axes& v) {
        return if_then_else(int64(1) <= v[0], load(x, {v[0] - 1, v[1], int64(0)}),
                            imm(kFloat32, 0.0));
      }));
      break;
    case 3:  // it reads what the last block may change
      stmts.push_back(compute("first", t, whole, [&](const Axes& v) {
        return load(y, {floormod(v[0] + 1, n), v[1]});
      }));
      break;
    default:  // one loop for both axes
      stmts.push_back(compute(
          "first", t, std::vector<Expr>{n * m},
          [&](const Axes& v) { return load(x, {floordiv(v[0], m), floormod(v[0], m), int64(0)}); },
          0, BinaryOp::kAdd, 0,
          [&](const Axes& v) { return Axes{floordiv(v[0], m), floormod(v[0], m)}; }));
  }
  if (has_u)
    stmts.push_back(compute("second", u, whole, [&](const Axes& v) {
      return load(t, v) + load(x, {v[0] + 2, v[1], int64(0)});
    }));
  const Ref<Buffer> from = has_u ? u : t;
  const int consumers = static_cast<int>(random.from(1, 2));
  for (int c = 0; c < consumers; ++c) {
    const std::string name = fmt::format("last{}", c);
    switch (random.below(9)) {
      case 0:
        stmts.push_back(compute(name, y, whole, [&](const Axes& v) {
          return has_u ? load(t, v) * load(u, v) : load(t, v) * imm(kFloat32, 2.0);
        }));
        break;
      case 1:
        stmts.push_back(compute(name, transposed, std::vector<Expr>{some, n},
                                [&](const Axes& v) { return load(from, {v[1], v[0]}); }));
        break;
      case 2:
        stmts.push_back(
            compute(name, rows, whole, [&](const Axes& v) { return load(from, v); }, 1));
        break;
      case 3:
        stmts.push_back(compute(name, flat, std::vector<Expr>{n * m}, [&](const Axes& v) {
          return load(from, {floordiv(v[0], m), floormod(v[0], m)});
        }));
        break;
      case 4:  // its neighbour below
        stmts.push_back(compute(name, z, whole, [&](const Axes& v) {
          return load(from, v) + load(from, {min(v[0] + 1, n - 1), v[1]});
        }));
        break;
      case 5:  // windows of two, one row apart
        stmts.push_back(compute(
            name, rows, std::vector<Expr>{n - 1, some, int64(2)},
            [&](const Axes& v) { return load(from, {v[0] + v[2], v[1]}); }, 2));
        break;
      case 6:
        stmts.push_back(compute(name, half, std::vector<Expr>{floordiv(n + 1, 2), some},
                                [&](const Axes& v) { return load(from, {v[0] * 2, v[1]}); }));
        break;
      case 7:  // from above
        stmts.push_back(compute(name, z, whole,
                                [&](const Axes& v) { return load(from, {n - 1 - v[0], v[1]}); }));
        break;
      default:  // a row and all of it
        stmts.push_back(compute(
            name, y, std::vector<Expr>{n, some, n},
            [&](const Axes& v) { return load(from, {v[0], v[1]}) * load(t, {v[2], v[1]}); }, 1));
    }
  }
  return testing::function(params, allocs, stmts);
}

struct Count {
  int moved = 0;
  std::map<std::string, int> reasons;
};

void cut(Schedule& sch, Random& random) {
  const auto blocks = sch.blocks();
  const BlockRV block = blocks[random.below(blocks.size())];
  const auto loops = sch.get_loops(block);
  if (loops.empty()) return;
  const LoopRV loop = loops[random.below(loops.size())];
  switch (random.below(12)) {
    case 0:
    case 1:
    case 2: sch.split(loop, random.from(2, 4)); break;
    case 3:
    case 4: {
      const size_t i = random.below(loops.size()), j = random.below(loops.size());
      if (i != j) sch.reorder({loops[i], loops[j]});
      break;
    }
    case 5:
    case 6:
      if (loops.size() > 1) {
        const size_t i = random.below(loops.size() - 1);
        sch.fuse({loops[i], loops[i + 1]});
      }
      break;
    case 7: sch.loop_partition(loop, {int64(random.from(1, 3))}); break;
    case 8: sch.decompose_reduction(block, loop); break;
    case 9:
      if (random.coin())
        sch.fuse_block_iters(block, 0, 2);
      else
        sch.split_block_iter(block, random.from(0, 1), 2);
      break;
    case 10: sch.cache_write(block, 0, "local"); break;
    default:
      if (random.coin())
        sch.blockize(loop);
      else
        sch.decompose_padding(block, loop);
  }
}

void move(Schedule& sch, Random& random, Count& count) {
  const auto blocks = sch.blocks();
  const BlockRV block = blocks[random.below(blocks.size())];
  const BlockRV other = blocks[random.below(blocks.size())];
  const auto loops = sch.get_loops(other);
  if (loops.empty() || block == other) return;
  const LoopRV loop = loops[random.below(loops.size())];
  try {
    if (random.coin())
      sch.compute_at(block, loop);
    else
      sch.reverse_compute_at(block, loop);
    ++count.moved;
  } catch (const CompileError& error) {
    EXPECT_EQ(error.first().code.id, kScheduleIllegal.id) << error.first().message;
    ++count.reasons[error.first().message];
  }
}

bool is_same(uint32_t seed, Count& count) {
  Random random(seed);
  const bool symbolic = random.below(3) == 0;
  const Ref<Var> rows = Var::size("rows");
  const int64_t count_of_rows = random.from(2, 7);
  const Ref<PrimFunc> before = kernel(random, symbolic ? Expr(rows) : int64(count_of_rows));
  Schedule sch(before);
  for (int64_t round = random.from(1, 2); round > 0; --round) {
    for (int64_t step = random.from(0, 5); step > 0; --step) {
      try {
        cut(sch, random);
      } catch (const CompileError&) {
      }
    }
    for (int64_t step = random.from(1, 4); step > 0; --step) move(sch, random, count);
  }
  const std::vector<int64_t> sizes =
      symbolic ? std::vector<int64_t>{1, 2, count_of_rows, 9} : std::vector<int64_t>{count_of_rows};
  for (const int64_t size : sizes) {
    const testing::Env symbols{{rows.get(), size}};
    const auto a = results(*before, symbols);
    std::vector<std::vector<double>> b;
    try {
      b = results(*sch.func(), symbols);
    } catch (const std::exception& error) {
      ADD_FAILURE() << "seed " << seed << ": " << error.what() << "\n"
                    << sch.trace().str() << dump(*before) << dump(*sch.func());
      return false;
    }
    for (size_t i = 0; i < a.size(); ++i)
      for (size_t e = 0; e < a[i].size(); ++e)
        if (std::abs(a[i][e] - b[i][e]) > 1e-9) {
          ADD_FAILURE() << "seed " << seed << ": " << before->buffers[i]->name << " element " << e
                        << "\n"
                        << sch.trace().str() << dump(*before) << dump(*sch.func());
          return false;
        }
  }
  return true;
}

TEST(ComputeAtProperty, MovedBlocksKeepTheResults) {
  const char* more = std::getenv("TENON_COMPUTE_AT_RUNS");
  const uint32_t runs = more ? static_cast<uint32_t>(std::atoi(more)) : 400;
  Count count;
  int wrong = 0;
  for (uint32_t seed = 1; seed <= runs && wrong < 3; ++seed) wrong += !is_same(seed, count);
  if (more) {
    fmt::print("{} moved\n", count.moved);
    std::map<std::string, int> kinds;
    for (const auto& [message, times] : count.reasons) {
      std::string plain;
      bool quoted = false;
      for (const char c : message) {
        if (c == '`') quoted = !quoted;
        if (!quoted && c != '`') plain += c;
      }
      kinds[plain] += times;
    }
    for (const auto& [message, times] : kinds) fmt::print("{:6} {}\n", times, message);
  }
  EXPECT_GT(count.moved, static_cast<int>(runs / 8));
}

}  // namespace
}  // namespace tenon::tir
