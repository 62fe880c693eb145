// SPDX-License-Identifier: Apache-2.0
// Plans of contractions, word for word, for machines that differ in the width and the number of their
// vector registers.
#include <gtest/gtest.h>

#include "schedule_kernels.h"
#include "tenon/tir/schedule/default_schedule.h"
#include "tenon/tir/schedule/layout_choice.h"

namespace tenon::tir {
namespace {

using testing::tensor;

constexpr const char* k128 = "llvm -mcpu=x86-64-v2";
constexpr const char* k256 = "llvm -mcpu=haswell";
constexpr const char* k256Of32 = "llvm -mcpu=skylake-avx512 -vector-bits=256";
constexpr const char* k512 = "llvm -mcpu=skylake-avx512";

std::vector<BlockPlan> plans_of(const Ref<PrimFunc>& kernel, const char* target) {
  std::vector<BlockPlan> plans;
  schedule_by_default(kernel, parse_target(target), &plans);
  return plans;
}

// One line for each nest of each block.
std::string text_of(const Ref<PrimFunc>& kernel, const char* target) {
  std::string text;
  for (const BlockPlan& plan : plans_of(kernel, target)) text += str(plan) + "\n";
  return text;
}

Ref<PrimFunc> matmul(const Expr& m, int64_t n, int64_t k, bool transposed = false) {
  const auto a = tensor("a", {m, int64(k)}), y = tensor("y", {m, int64(n)});
  const auto b = transposed ? tensor("b", {int64(n), int64(k)}) : tensor("b", {int64(k), int64(n)});
  return testing::function({a, b, y}, {},
                           {testing::compute(
                               "matmul", y, {m, int64(n), int64(k)},
                               [&](const std::vector<Expr>& v) {
                                 return load(a, {v[0], v[2]}) * (transposed
                                                                     ? load(b, {v[1], v[2]})
                                                                     : load(b, {v[2], v[1]}));
                               },
                               1)});
}

/// A convolution of 64 channels over `side` x `side`, in the layout that is chosen for it.
Ref<PrimFunc> conv(const char* text, int64_t kernel, int64_t side = 56) {
  const Target target = parse_target(text);
  ConvShape shape;
  shape.in_channels = shape.out_channels = 64;
  shape.out_height = shape.out_width = side;
  shape.kernel_height = shape.kernel_width = kernel;
  const ConvLayout layout = choose_conv_layout(shape, target);
  testing::Conv conv{64, 64, side + kernel - 1, side + kernel - 1, kernel};
  conv.v = layout.block;
  conv.group = layout.weight_group;
  return testing::conv(conv);
}

Ref<PrimFunc> depthwise(const char* target, int64_t side = 56) {
  testing::Conv conv{64, 64, side + 2, side + 2, 3};
  conv.v = parse_target(target).vector_lanes(32);
  return testing::depthwise(conv);
}

TEST(Plan, Matmul) {
  EXPECT_EQ(text_of(matmul(int64(128), 512, 256), k128),
            "`matmul`: contraction: M v0[128], K v2[256], lane v1[512]; "
            "tile 1 x 6 x 2 (rows, columns, vectors of 4); 8 steps unrolled; "
            "predicted 1031 us; "
            "runner-up 1 x 5 x 2: 1042 us\n");
  EXPECT_EQ(text_of(matmul(int64(128), 512, 256), k256),
            "`matmul`: contraction: M v0[128], K v2[256], lane v1[512]; "
            "tile 1 x 6 x 2 (rows, columns, vectors of 8); 8 steps unrolled; "
            "predicted 515.4 us; "
            "runner-up 1 x 5 x 2: 521.1 us\n");
  EXPECT_EQ(text_of(matmul(int64(128), 512, 256), k256Of32),
            "`matmul`: contraction: M v0[128], K v2[256], lane v1[512]; "
            "tile 1 x 6 x 4 (rows, columns, vectors of 8); 4 steps unrolled; "
            "predicted 485.3 us; "
            "runner-up 1 x 5 x 4: 490.5 us\n");
  EXPECT_EQ(text_of(matmul(int64(128), 512, 256), k512),
            "`matmul`: contraction: M v0[128], K v2[256], lane v1[512]; "
            "tile 1 x 6 x 4 (rows, columns, vectors of 16); 4 steps unrolled; "
            "columns cut into 2 tasks inside the weights; "
            "predicted 242.6 us; "
            "runner-up 1 x 5 x 4: 246.1 us\n");
}

TEST(Plan, MatmulOfOneRow) {
  EXPECT_EQ(text_of(matmul(int64(1), 512, 256), k128),
            "`matmul`: row: K v2[256], lane v1[512]; "
            "tile 1 x 1 x 4 (rows, columns, vectors of 4); 8 steps unrolled; "
            "predicted 52.43 us\n");
  EXPECT_EQ(text_of(matmul(int64(1), 512, 256), k256),
            "`matmul`: row: K v2[256], lane v1[512]; "
            "tile 1 x 1 x 4 (rows, columns, vectors of 8); 8 steps unrolled; "
            "predicted 52.43 us\n");
  EXPECT_EQ(text_of(matmul(int64(1), 512, 256), k256Of32),
            "`matmul`: row: K v2[256], lane v1[512]; "
            "tile 1 x 1 x 8 (rows, columns, vectors of 8); 2 steps unrolled; "
            "predicted 5.113 us\n");
  EXPECT_EQ(text_of(matmul(int64(1), 512, 256), k512),
            "`matmul`: row: K v2[256], lane v1[512]; "
            "tile 1 x 1 x 8 (rows, columns, vectors of 16); predicted 2.557 us\n");
  // Weights beyond the second cache come in longer steps.
  EXPECT_EQ(text_of(matmul(int64(1), 4096, 1024), k512),
            "`matmul`: row: K v2[1024], lane v1[4096]; "
            "tile 1 x 1 x 8 (rows, columns, vectors of 16); 8 steps unrolled; "
            "predicted 1678 us\n");
}

TEST(Plan, MatmulOfSymbolicRows) {
  EXPECT_EQ(text_of(matmul(Var::size("n"), 512, 256), k128),
            "`matmul`: contraction: M v0[?], K v2[256], lane v1[512]; "
            "tile 1 x 4 x 2 (rows, columns, vectors of 4); 8 steps unrolled; "
            "predicted 7946 us at assumed lengths; "
            "runner-up 1 x 8 x 1: 1.002e+04 us\n");
  EXPECT_EQ(text_of(matmul(Var::size("n"), 512, 256), k256),
            "`matmul`: contraction: M v0[?], K v2[256], lane v1[512]; "
            "tile 1 x 4 x 2 (rows, columns, vectors of 8); 8 steps unrolled; "
            "predicted 3973 us at assumed lengths; "
            "runner-up 1 x 8 x 1: 5011 us\n");
  EXPECT_EQ(text_of(matmul(Var::size("n"), 512, 256), k256Of32),
            "`matmul`: contraction: M v0[?], K v2[256], lane v1[512]; "
            "tile 1 x 4 x 4 (rows, columns, vectors of 8); 8 steps unrolled; "
            "predicted 3738 us at assumed lengths; "
            "runner-up 1 x 12 x 2: 3743 us\n");
  EXPECT_EQ(text_of(matmul(Var::size("n"), 512, 256), k512),
            "`matmul`: contraction: M v0[?], K v2[256], lane v1[512]; "
            "tile 1 x 4 x 4 (rows, columns, vectors of 16); 8 steps unrolled; "
            "predicted 1869 us at assumed lengths; "
            "runner-up 1 x 12 x 2: 1872 us\n");
}

// The layout packs weights for the tile that the plan then has: both come from one problem.
TEST(Plan, HasTheTileThatTheLayoutPacksFor) {
  for (const char* text : {k128, k256, k256Of32, k512}) {
    const Target target = parse_target(text);
    for (const int64_t in : {3, 16, 64, 256})
      for (const int64_t out : {16, 24, 64, 256})
        for (const int64_t size : {7, 14, 56})
          for (const int64_t kernel : {1, 3, 7})
            for (const int64_t stride : {1, 2}) {
              testing::Conv conv{in, out, size, size, kernel, stride, kernel / 2};
              ConvShape shape;
              shape.in_channels = in;
              shape.out_channels = out;
              shape.out_height = shape.out_width = (size + 2 * conv.pad - kernel) / stride + 1;
              shape.kernel_height = shape.kernel_width = kernel;
              shape.stride_height = shape.stride_width = stride;
              const ConvLayout layout = choose_conv_layout(shape, target);
              conv.v = layout.block;
              conv.group = layout.weight_group;
              const bool planar = layout.kind == ConvLayout::Kind::kPlanarInput;
              const Ref<PrimFunc> function =
                  planar ? testing::planar_conv(conv) : testing::conv(conv);
              const auto said = [&](const BlockPlan& plan) {
                return fmt::format("{}: {} to {} channels of {} x {}, kernel {}, stride {}\n{}",
                                   text, in, out, size, size, kernel, stride, str(plan));
              };
              for (const BlockPlan& plan : plans_of(function, text)) {
                // Tiles of two widths are of weights in no panels.
                if (plan.tiles.size() > 1) EXPECT_EQ(layout.weight_group, 1) << said(plan);
                if (plan.tiles.size() == 1)
                  EXPECT_EQ(str(plan.tiles[0].tile()), str(layout.tile)) << said(plan);
              }
            }
  }
}

TEST(Plan, SaysWhatDidNotSuit) {
  EXPECT_EQ(
      text_of(matmul(int64(2), 3, 1), k256),
      "`matmul`; no tiles: the reduction of block `matmul` has no loop; no row-reduction: block "
      "`matmul` does not reduce over consecutive elements; no planar-window: block `matmul` has "
      "short rows\n");
}

// The dimension of a buffer is not negative.
TEST(Plan, MatmulOfAnyLength) {
  EXPECT_EQ(
      text_of(matmul(var("n"), 512, 256), k256),
      "`matmul`: contraction: M v0[?], K v2[256], lane v1[512]; tile 1 x 4 x 2 (rows, columns, "
      "vectors of 8); 8 steps unrolled; predicted 3973 us at assumed lengths; runner-up 1 x 8 x "
      "1: 5011 us\n");
}

TEST(Plan, MatmulByATransposedOperand) {
  EXPECT_EQ(text_of(matmul(int64(128), 500, 256, true), k128),
            "`matmul`: contraction: M v0[128], K v2[256], lane v1[500]; "
            "tile 1 x 2 x 5 (rows, columns, vectors of 4); `b` packed; 8 steps unrolled; "
            "predicted 1041 us; "
            "runner-up 1 x 8 x 1: 1305 us\n");
  EXPECT_EQ(
      text_of(matmul(int64(128), 500, 256, true), k256),
      "`matmul`: contraction: M v0[128], K v2[256], lane v1[496]; "
      "tile 1 x 6 x 2 (rows, columns, vectors of 8); `b` packed; 8 steps unrolled; "
      "predicted 499.3 us; "
      "runner-up 1 x 5 x 2: 504.8 us; "
      "then dots: M v0[128], K v2[256], lane v1[4]; vectors of 8 along K; predicted 4.301 us\n");
  EXPECT_EQ(
      text_of(matmul(int64(128), 500, 256, true), k256Of32),
      "`matmul`: contraction: M v0[128], K v2[256], lane v1[496]; "
      "tile 1 x 13 x 2 (rows, columns, vectors of 8); `b` packed; 4 steps unrolled; "
      "predicted 482.6 us; "
      "runner-up 1 x 12 x 2: 484 us; "
      "then dots: M v0[128], K v2[256], lane v1[4]; vectors of 8 along K; predicted 4.301 us\n");
  EXPECT_EQ(
      text_of(matmul(int64(128), 500, 256, true), k512),
      "`matmul`: contraction: M v0[128], K v2[256], lane v1[496]; "
      "tile 1 x 27 x 1 (rows, columns, vectors of 16); `b` packed; 4 steps unrolled; "
      "predicted 272.8 us; "
      "runner-up 1 x 26 x 1: 272.8 us; "
      "then dots: M v0[128], K v2[256], lane v1[4]; vectors of 16 along K; predicted 2.662 us\n");
}

// Columns that fill no vector, as nests by their width: "4, dots of 1".
std::string rest_of(const Ref<PrimFunc>& kernel, const char* target) {
  std::string text;
  const std::vector<BlockPlan> plans = plans_of(kernel, target);
  for (size_t i = 1; i < plans.at(0).tiles.size(); ++i) {
    const TilePlan& nest = plans[0].tiles[i];
    if (!text.empty()) text += ", ";
    if (nest.algorithm == TilePlan::Algorithm::kDots) text += "dots of ";
    text += std::to_string(nest.lane.extent);
  }
  return text;
}

TEST(Plan, ColumnsThatFillNoVectorAreDots) {
  EXPECT_EQ(text_of(matmul(int64(24), 17, 64), k256),
            "`matmul`: contraction: M v0[24], K v2[64], lane v1[16]; "
            "tile 1 x 6 x 2 (rows, columns, vectors of 8); 8 steps unrolled; predicted 0.8207 us; "
            "runner-up 1 x 5 x 2: 0.838 us; "
            "then dots: M v0[24], K v2[64], lane v1[1]; vectors of 8 along K; `b` packed; "
            "predicted 0.0864 us\n");
  EXPECT_EQ(rest_of(matmul(int64(24), 23, 64), k256), "4, dots of 3");
  EXPECT_EQ(rest_of(matmul(int64(24), 23, 512), k256), "4, dots of 3");
  EXPECT_EQ(rest_of(matmul(int64(24), 31, 256), k512), "8, dots of 7");
  EXPECT_EQ(rest_of(matmul(int64(24), 31, 256), "llvm -vector-bits=512 -vector-registers=16"),
            "8, dots of 7");
  EXPECT_EQ(rest_of(matmul(int64(24), 19, 64), k128), "dots of 3");
  // Few steps or rows, copies that leave no room in the first cache, and rows that no number divides.
  EXPECT_EQ(rest_of(matmul(int64(24), 17, 12), k256), "1");
  EXPECT_EQ(rest_of(matmul(int64(7), 17, 64), k256), "1");
  EXPECT_EQ(rest_of(matmul(int64(24), 17, 4096), k256), "1");
  EXPECT_EQ(rest_of(matmul(int64(10007), 17, 64), k256), "16, 1");
  EXPECT_EQ(rest_of(matmul(int64(10000), 17, 64), k256), "dots of 1");
  EXPECT_EQ(plans_of(matmul(int64(10000), 17, 64), k256)[0].tiles[1].tasks, 2);
}

TEST(Plan, Conv3x3) {
  EXPECT_EQ(text_of(conv(k128, 3), k128),
            "`conv`: contraction: M v2[56] v3[56], N v1_0[8] v1_1[2], K v5[16] v6[3] v7[3] v8[4], "
            "lane v4[4]; "
            "tile 2 x 3 x 2 (rows, columns, vectors of 4 along N); v7 and v8 in one loop; 4 steps "
            "unrolled; "
            "rows cut into 4 tasks inside the weights; "
            "prefetches the next panel; "
            "predicted 6986 us; "
            "runner-up 1 x 6 x 2: 7034 us\n");
  EXPECT_EQ(text_of(conv(k256, 3), k256),
            "`conv`: contraction: M v2[56] v3[56], N v1_0[4] v1_1[2], K v5[8] v6[3] v7[3] v8[8], "
            "lane v4[8]; "
            "tile 2 x 3 x 2 (rows, columns, vectors of 8 along N); v7 and v8 in one loop; 8 steps "
            "unrolled; "
            "rows cut into 4 tasks inside the weights; "
            "prefetches the next panel; "
            "predicted 3493 us; "
            "runner-up 1 x 6 x 2: 3517 us\n");
  EXPECT_EQ(text_of(conv(k256Of32, 3), k256Of32),
            "`conv`: contraction: M v2[56] v3[56], N v1_0[2] v1_1[4], K v5[8] v6[3] v7[3] v8[8], "
            "lane v4[8]; "
            "tile 2 x 3 x 4 (rows, columns, vectors of 8 along N); v7 and v8 in one loop; 4 steps "
            "unrolled; "
            "rows cut into 28 tasks outside the weights; "
            "predicted 3296 us; "
            "runner-up 1 x 6 x 4: 3319 us\n");
  EXPECT_EQ(text_of(conv(k512, 3), k512),
            "`conv`: contraction: M v2[56] v3[56], N v1_0[2] v1_1[2], K v5[4] v6[3] v7[3] v8[16], "
            "lane v4[16]; "
            "tile 3 x 4 x 2 (rows, columns, vectors of 16 along N); v7 and v8 in one loop; 4 steps "
            "unrolled; "
            "rows cut into 4 tasks outside the weights; "
            "predicted 1698 us; "
            "runner-up 2 x 6 x 2: 1706 us\n");
}

TEST(Plan, Conv1x1) {
  EXPECT_EQ(text_of(conv(k128, 1), k128),
            "`conv`: contraction: M v2_v3[3136], N v1_0[8] v1_1[2], K v5[16] v8[4], lane v4[4]; "
            "tile 1 x 6 x 2 (rows, columns, vectors of 4 along N), rows joined; 4 steps unrolled; "
            "columns cut into 4 tasks outside the weights; "
            "predicted 858 us; "
            "runner-up 1 x 5 x 2: 872.5 us\n");
  EXPECT_EQ(text_of(conv(k256, 1), k256),
            "`conv`: contraction: M v2_v3[3136], N v1_0[4] v1_1[2], K v5[8] v8[8], lane v4[8]; "
            "tile 1 x 6 x 2 (rows, columns, vectors of 8 along N), rows joined; 8 steps unrolled; "
            "columns cut into 4 tasks outside the weights; "
            "predicted 429 us; "
            "runner-up 1 x 5 x 2: 436.2 us\n");
  EXPECT_EQ(text_of(conv(k256Of32, 1), k256Of32),
            "`conv`: contraction: M v2_v3[3136], N v1_0[2] v1_1[4], K v5[8] v8[8], lane v4[8]; "
            "tile 1 x 6 x 4 (rows, columns, vectors of 8 along N), rows joined; 4 steps unrolled; "
            "columns cut into 8 tasks outside the weights; "
            "predicted 399.8 us; "
            "runner-up 1 x 5 x 4: 405.3 us\n");
  EXPECT_EQ(text_of(conv(k512, 1), k512),
            "`conv`: contraction: M v2_v3[3136], N v1[4], K v5[4] v8[16], lane v4[16]; "
            "tile 1 x 6 x 4 (rows, columns, vectors of 16 along N), rows joined; 4 steps unrolled; "
            "columns cut into 16 tasks outside the weights; "
            "predicted 199.9 us; "
            "runner-up 1 x 5 x 4: 202.7 us\n");
}

TEST(Plan, DepthwiseConv) {
  EXPECT_EQ(text_of(depthwise(k128), k128),
            "`depthwise`: window: batch v1[16], M v2[56] v3[56], K v5[3] v6[3], lane v4[4]; "
            "tile 1 x 8 x 1 (rows, columns, vectors of 4); 3 steps unrolled\n");
  EXPECT_EQ(text_of(depthwise(k256), k256),
            "`depthwise`: window: batch v1[8], M v2[56] v3[56], K v5[3] v6[3], lane v4[8]; "
            "tile 1 x 8 x 1 (rows, columns, vectors of 8); 3 steps unrolled\n");
  EXPECT_EQ(text_of(depthwise(k256Of32), k256Of32),
            "`depthwise`: window: batch v1[8], M v2[56] v3[56], K v5[3] v6[3], lane v4[8]; "
            "tile 1 x 8 x 1 (rows, columns, vectors of 8); 3 steps unrolled\n");
  EXPECT_EQ(text_of(depthwise(k512), k512),
            "`depthwise`: window: batch v1[4], M v2[56] v3[56], K v5[3] v6[3], lane v4[16]; "
            "tile 1 x 8 x 1 (rows, columns, vectors of 16); 3 steps unrolled\n");
}

/// A 1 x 1 convolution of `inputs` to `outputs` channels whose weights are in no cache when it runs.
Ref<PrimFunc> far_conv(int64_t inputs, int64_t outputs, int64_t side) {
  testing::Conv conv{inputs, outputs, side, side, 1};
  conv.v = 16;
  conv.group = 4;
  return testing::conv(conv)->with_attr(kFarConstants, true);
}

TEST(Plan, WeightsThatDoNotStayArePrefetched) {
  const auto prefetches = [](const Ref<PrimFunc>& kernel) {
    return plans_of(kernel, k512).at(0).tiles.at(0).prefetches;
  };
  // 128 KB, in eight panels or more.
  EXPECT_TRUE(prefetches(far_conv(64, 512, 7)));
  EXPECT_FALSE(prefetches(without_attr(far_conv(64, 512, 7), kFarConstants)));
  // 16 KB, which the first cache holds.
  EXPECT_FALSE(prefetches(far_conv(8, 512, 7)));
  // Few panels, for few rows and for many.
  EXPECT_FALSE(prefetches(far_conv(512, 128, 7)));
  EXPECT_TRUE(prefetches(far_conv(512, 128, 14)));
}

// Two panels may take one and a half of the second cache with 16 registers, three quarters of it with 32.
TEST(Plan, PanelsThatArePrefetchedAreNotTooLarge) {
  const auto prefetches = [](int64_t inputs, int64_t lanes, int64_t vectors, const char* target) {
    testing::Conv conv{inputs, 4 * lanes * vectors, 9, 9, 3};
    conv.v = lanes;
    conv.group = vectors;
    return plans_of(testing::conv(conv), target).at(0).tiles.at(0).prefetches;
  };
  EXPECT_TRUE(prefetches(336, 8, 2, "llvm -mcpu=haswell -l2=262144"));  // 189 KB
  EXPECT_FALSE(prefetches(344, 8, 2, "llvm -mcpu=haswell -l2=262144"));
  EXPECT_TRUE(prefetches(160, 16, 4, "llvm -mcpu=skylake-avx512 -l2=1048576"));  // 360 KB
  EXPECT_FALSE(prefetches(176, 16, 4, "llvm -mcpu=skylake-avx512 -l2=1048576"));
}

// Weights that each tile reads from the second cache: few columns by many vectors would wait for them.
TEST(Plan, FewColumnsTakeNarrowPanelsOfFarWeights) {
  const auto tile = [](int64_t inputs) {
    testing::Conv conv{inputs, 2048, 14, 14, 1};
    conv.stride = 2;
    conv.v = 16;
    conv.group = 4;
    return str(plans_of(testing::conv(conv), k512).at(0).tiles.at(0).tile());
  };
  EXPECT_EQ(tile(1024), "1 x 7 x 2");
  EXPECT_EQ(tile(64), "1 x 6 x 4");
}

TEST(Plan, FewColumnsOfAnOddNumberOfPanelsTakeNarrowOnes) {
  const auto tiles = [](int64_t side) {
    testing::Conv conv{960, 320, side, side, 1};
    conv.v = 16;
    conv.group = 4;
    const std::vector<BlockPlan> plans =
        plans_of(testing::conv(conv), "llvm -mcpu=skylake-avx512 -l2=2097152");
    std::string text;
    for (const TilePlan& nest : plans.at(0).tiles) text += str(nest.tile()) + "; ";
    return text;
  };
  EXPECT_EQ(tiles(7), "1 x 13 x 2; ");
  // Many columns keep wide panels, and leave some to another nest.
  EXPECT_EQ(tiles(11), "1 x 6 x 4; 1 x 1 x 4; ");
}

// Inputs that leave the second cache between two panels are asked for block by block.
TEST(Plan, ColumnsOfFarInputsArePrefetched) {
  const auto conv = [](int64_t inputs, int64_t outputs, int64_t stride, int64_t side) {
    testing::Conv conv{inputs, outputs, side, side, 1};
    conv.stride = stride;
    conv.v = 16;
    conv.group = 4;
    return testing::conv(conv);
  };
  const auto fetches = [](const Ref<PrimFunc>& kernel, int64_t l2) {
    const std::string target = fmt::format("llvm -mcpu=skylake-avx512 -l2={}", l2);
    const TilePlan plan = plans_of(kernel, target.c_str()).at(0).tiles.at(0);
    // The plan says what the schedule does.
    const Schedule s = schedule_by_default(kernel, parse_target(target), nullptr);
    bool hints = false;
    walk<Call>(s.func(), [&](const Call& call) {
      hints = hints || (call.is(IntrinsicId::kPrefetch) &&
                        call.arg(0).as<BufferLoad>()->buffer.same_as(s.func()->buffers.at(0)));
    });
    EXPECT_EQ(hints, plan.fetches_columns);
    return plan.fetches_columns;
  };
  EXPECT_TRUE(fetches(conv(1024, 256, 1, 14), 1 << 20));
  EXPECT_FALSE(fetches(conv(1024, 256, 1, 14), 2 << 20));
  EXPECT_FALSE(fetches(conv(256, 1024, 1, 14), 1 << 20));
  // Every other column: half of the sets.
  EXPECT_TRUE(fetches(conv(512, 1024, 2, 28), 1 << 20));
  EXPECT_FALSE(fetches(conv(512, 1024, 2, 28), 3 << 19));
}

TEST(Plan, HintsStandInTheTiles) {
  for (const char* target : {k128, k256, k256Of32, k512}) {
    SCOPED_TRACE(target);
    const Schedule s = schedule_by_default(far_conv(64, 512, 7), parse_target(target), nullptr);
    int hints = 0;
    walk<Call>(s.func(), [&](const Call& call) { hints += call.is(IntrinsicId::kPrefetch); });
    EXPECT_GT(hints, 0);
  }
}

// Consecutive kernels divide the same rows, so that a core finds them in its own cache: an even number of
// tasks, or an odd one that leaves two threads about as much.
TEST(Plan, SmallConvolutionsDivideTheSameRows) {
  const auto tasks = [](const Ref<PrimFunc>& kernel) {
    std::string text;
    for (const BlockPlan& plan : plans_of(kernel, k512))
      for (const TilePlan& nest : plan.tiles)
        text +=
            fmt::format("{}{} {}", nest.tasks_of == TilePlan::Tasks::kRows ? "rows " : "columns ",
                        nest.tasks, nest.tasks_outside ? "outside" : "inside");
    return text;
  };
  EXPECT_EQ(tasks(conv(k512, 1, 12)), "columns 6 outside");
  EXPECT_EQ(tasks(depthwise(k512, 12)), "rows 6 outside");
  // Blocks of channels alone.
  EXPECT_EQ(tasks(depthwise(k512, 15)), "columns 1 inside");
  EXPECT_EQ(tasks(conv(k512, 1, 15)), "columns 5 outside");
  EXPECT_EQ(tasks(conv(k512, 1, 56)), "columns 16 outside");
  // More than a quarter of the second cache: where the tasks are even, and not many products.
  const auto pointwise = [](int64_t inputs, int64_t outputs, int64_t side) {
    testing::Conv conv{inputs, outputs, side, side, 1};
    conv.v = 16;
    conv.group = 2;
    return testing::conv(conv);
  };
  EXPECT_EQ(tasks(pointwise(576, 96, 14)), "columns 4 outside");
  EXPECT_EQ(tasks(pointwise(576, 32, 15)), "columns 5 inside");
  EXPECT_EQ(tasks(pointwise(576, 192, 14)), "columns 4 inside");
}

// Tasks whose tiles are less full take more time on one thread; more tasks than threads take turns.
TEST(Plan, TasksCountTilesThatAreNotFull) {
  const auto tasks = [](const Ref<PrimFunc>& kernel) {
    const std::vector<BlockPlan> plans = plans_of(kernel, k512);
    return plans.at(0).tiles.at(0).tasks;
  };
  // Eight panels of 64 columns: 64 rows are 9 tiles of 6 and 2 of 5; in four parts, 4 of 6 and 8 of 5.
  EXPECT_EQ(tasks(matmul(int64(64), 512, 800)), 1);
  EXPECT_EQ(tasks(matmul(int64(72), 512, 800)), 4);
  // Two panels: eight threads have a task each.
  EXPECT_EQ(tasks(matmul(int64(64), 128, 3200)), 4);
  testing::Conv conv{1024, 256, 14, 14, 1};
  conv.v = 16;
  conv.group = 4;
  EXPECT_EQ(tasks(testing::conv(conv)), 2);
}

// 17 vectors are two tiles of four and three of three; 16 are tiles of four.
TEST(Plan, VectorsThatOnlyOneDividesAreTilesOfTwoWidths) {
  const auto widths = [](int64_t channels, const char* target, int64_t kernel = 1) {
    testing::Conv conv{64, channels, 14, 14, kernel};
    conv.v = parse_target(target).vector_lanes();
    std::string text;
    for (const BlockPlan& plan : plans_of(testing::conv(conv), target))
      for (const TilePlan& nest : plan.tiles)
        text += fmt::format("{} of {}, ", nest.tile().vectors,
                            nest.n.empty() ? 1 : nest.n.back().extent);
    return text;
  };
  EXPECT_EQ(widths(256, k512), "4 of 16, ");
  EXPECT_EQ(widths(17 * 16, k512), "4 of 8, 3 of 9, ");
  EXPECT_EQ(widths(11 * 8, k256), "3 of 9, 2 of 2, ");
  // Five fit a tile; two nests save less than they cost.
  EXPECT_EQ(widths(5 * 16, k512), "5 of 5, ");
  EXPECT_EQ(widths(17 * 16, k512, 3), "2 of 16, 1 of 1, ");
}

// 125 vectors are tiles of five, of two columns, where the weights are in panels of five. The layout leaves
// them in single vectors, as 41 tiles of three and one of two are faster; a row of outputs stays in panels.
TEST(Plan, LayoutsLeaveVectorsThatAreTilesOfTwoWidths) {
  ConvShape shape;
  shape.in_channels = 512;
  shape.out_channels = 1000;
  shape.out_height = shape.out_width = 13;
  const Target target = parse_target(k256);
  EXPECT_EQ(choose_conv_layout(shape, target).weight_group, 1);
  shape.out_height = shape.out_width = 1;
  EXPECT_EQ(choose_conv_layout(shape, target).weight_group, 5);
  shape.out_height = shape.out_width = 13;
  shape.out_channels = 1024;
  EXPECT_EQ(choose_conv_layout(shape, target).weight_group, 2);
}

// Three panels leave one of two threads waiting: rows are tasks, too, and those of a last tile that is
// not full have a nest of their own.
TEST(Plan, RowsThatNoNumberDividesAreTasksButForTheLast) {
  EXPECT_EQ(text_of(matmul(int64(197), 192, 256), k512),
            "`matmul`: contraction: M v0[192], K v2[256], lane v1[192]; "
            "tile 1 x 6 x 4 (rows, columns, vectors of 16); 4 steps unrolled; "
            "columns cut into 4 tasks inside the weights; "
            "predicted 136.2 us; runner-up 1 x 8 x 3: 137 us; "
            "then contraction: M v0[5], K v2[256], lane v1[192]; "
            "tile 1 x 5 x 4 (rows, columns, vectors of 16); 4 steps unrolled; "
            "predicted 3.589 us; runner-up 1 x 5 x 3: 3.663 us\n");
  // An even number of panels; weights that a second nest would fetch from memory again.
  const auto nests = [](const Ref<PrimFunc>& kernel) {
    return plans_of(kernel, k512).at(0).tiles.size();
  };
  EXPECT_EQ(nests(matmul(int64(197), 192, 256)), 2);
  EXPECT_EQ(nests(matmul(int64(197), 256, 256)), 1);
  EXPECT_EQ(nests(matmul(int64(197), 192, 4096)), 1);
}

}  // namespace
}  // namespace tenon::tir
