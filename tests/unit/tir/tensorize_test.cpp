// SPDX-License-Identifier: Apache-2.0
// tensorize: what it replaces, and what it refuses.
#include "tenon/tir/schedule/tensorize.h"

#include <gtest/gtest.h>

#include "schedule_kernels.h"

namespace tenon::tir {
namespace {

using testing::compute;
using testing::function;
using testing::tensor;

Ref<Buffer> strided(const std::string& name, int64_t rows, int64_t columns) {
  Buffer::Options options;
  options.strides = {var("s_" + name), int64(1)};
  return make<Buffer>(name, kFloat32, to_exprs({rows, columns}), options);
}

/// c[4, 4] += a[4, 8] * b[8, 4], in the order of loops that is given. The implementation takes rows
/// that lie apart, unless it is `dense`.
TensorIntrin tile(bool starts, bool dense = false) {
  const auto made = [&](bool apart) {
    const auto matrix = [&](const char* name, int64_t rows, int64_t columns) {
      return apart ? strided(name, rows, columns)
                   : tensor(name, std::vector<int64_t>{rows, columns});
    };
    const auto a = matrix("a", 4, 8), b = matrix("b", 8, 4), c = matrix("c", 4, 4);
    const auto product = compute(
        "mma", c, to_exprs({4, 4, 8}),
        [&](const auto& v) { return load(a, {v[0], v[2]}) * load(b, {v[2], v[1]}); }, 1);
    if (starts) return function({a, b, c}, {}, {product});
    Schedule sch(function({a, b, c}, {}, {product}));
    const auto loops = sch.get_loops(sch.get_block("mma"));
    sch.decompose_reduction(sch.get_block("mma"), loops[0]);
    // The update alone.
    const Block& root = *root_block(*sch.func());
    return function({a, b, c}, {}, {stmts_of(root.body).back()});
  };
  return {"mma_desc", "mma_impl", made(false), made(!dense)};
}

Ref<PrimFunc> product() {
  const auto x = tensor("x", std::vector<int64_t>{8, 16}),
             w = tensor("w", std::vector<int64_t>{16, 12});
  const auto y = tensor("y", std::vector<int64_t>{8, 12});
  return function(
      {x, w, y}, {},
      {compute(
          "gemm", y, to_exprs({8, 12, 16}),
          [&](const auto& v) { return load(w, {v[2], v[1]}) * load(x, {v[0], v[2]}); }, 1)});
}

// 4 x 4 x 8 tiles, with the loops inside in another order than the description's.
LoopRV tiled(Schedule& sch) {
  const auto loops = sch.get_loops(sch.get_block("gemm"));
  const auto i = sch.split(loops[0], 4), j = sch.split(loops[1], 4), k = sch.split(loops[2], 8);
  sch.reorder({i[0], j[0], k[0], k[1], j[1], i[1]});
  return k[1];
}

const CallTir* call_in(const PrimFunc& function) {
  const CallTir* found = nullptr;
  walk<CallTir>(function.body, [&](const CallTir& call) { found = &call; });
  return found;
}

std::string regions(const CallTir& call) {
  std::string text;
  for (const NodePtr& arg : call.args) {
    const auto& region = *arg.as<BufferRegion>();
    text += region.buffer->name + "[";
    for (const Range& range : region.region) text += str(range.min) + "+" + str(range.extent) + ",";
    text += "] ";
  }
  return text;
}

TEST(Tensorize, CallsTheImplementationOfATile) {
  Schedule sch(product());
  sch.tensorize(tiled(sch), tile(false));
  const CallTir* call = call_in(*sch.func());
  ASSERT_NE(call, nullptr);
  EXPECT_EQ(call->callee->name, "mma_impl");
  EXPECT_EQ(regions(*call),
            "x[v0_o * 4+4,v2_o * 8+8,] w[v2_o * 8+8,v1_o * 4+4,] y[v0_o * 4+4,v1_o * 4+4,] ");
  EXPECT_TRUE(sch.has_block("gemm_init"));
}

TEST(Tensorize, TakesTheStartWhereTheDescriptionHasIt) {
  Schedule sch(product());
  const auto loops = sch.get_loops(sch.get_block("gemm"));
  const auto i = sch.split(loops[0], 4), j = sch.split(loops[1], 4);
  sch.reorder({i[0], j[0], loops[2], i[1], j[1]});
  auto whole = tile(true);
  std::string said;
  try {
    sch.tensorize(loops[2], whole);
  } catch (const CompileError& error) {
    said = error.first().message;
  }
  EXPECT_EQ(said, "block `gemm_o` does not do what `mma_desc` describes: 16 is not 8");
  EXPECT_FALSE(sch.has_block("gemm_o"));
}

TEST(Tensorize, Replays) {
  const auto f = product();
  Schedule sch(f);
  sch.tensorize(tiled(sch), tile(false));
  const Schedule again = replay(sch.trace(), f);
  EXPECT_TRUE(structural_equal(sch.func(), again.func()));
  EXPECT_NE(sch.trace().str().find("sch.tensorize(l"), std::string::npos) << sch.trace().str();
}

TEST(Tensorize, RefusesWhatIsNotThere) {
  const auto refusal = [](const std::function<void(Schedule&)>& act) -> std::string {
    Schedule sch(product());
    try {
      act(sch);
    } catch (const CompileError& error) {
      EXPECT_EQ(error.first().code.id, kScheduleIllegal.id);
      return error.first().message;
    }
    return "accepted";
  };
  EXPECT_EQ(refusal([](Schedule& sch) { sch.tensorize(sch.get_block("gemm"), tile(false)); }),
            "block `gemm` holds no block; expected one that blockize has made");
  EXPECT_EQ(refusal([](Schedule& sch) {
              const auto loops = sch.get_loops(sch.get_block("gemm"));
              const auto i = sch.split(loops[0], 4), j = sch.split(loops[1], 5);
              const auto k = sch.split(loops[2], 8);
              sch.reorder({i[0], j[0], k[0], i[1], j[1], k[1]});
              sch.tensorize(i[1], tile(false));
            }),
            "block `gemm_o` does not do what `mma_desc` describes: block `gemm` runs under a "
            "predicate");
  EXPECT_EQ(refusal([](Schedule& sch) {
              TensorIntrin other = tile(false);
              other.implementation = tile(false).implementation;
              const auto a = tensor("a", std::vector<int64_t>{4, 4});
              const auto b = tensor("b", std::vector<int64_t>{8, 4});
              const auto c = tensor("c", std::vector<int64_t>{4, 4});
              other.implementation =
                  function({a, b, c}, {}, {compute("copy", c, a->shape, [&](const auto& v) {
                             return load(a, v) + load(b, v);
                           })});
              sch.tensorize(tiled(sch), other);
            }),
            "implementation `mma_impl` has `a`: (4, 4) float32 in scope `global`; description "
            "`mma_desc` differs");
}

TEST(Tensorize, RefusesRegionsThatTheImplementationCannotTake) {
  Schedule sch(product());
  try {
    sch.tensorize(tiled(sch), tile(false, true));
    FAIL() << "rows that lie apart were given to an implementation of dense ones";
  } catch (const CompileError& error) {
    EXPECT_EQ(error.first().code.id, kScheduleIllegal.id);
    EXPECT_NE(error.first().message.find("cannot be given these regions"), std::string::npos)
        << error.first().message;
  }
}

}  // namespace
}  // namespace tenon::tir
