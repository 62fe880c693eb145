// SPDX-License-Identifier: Apache-2.0
// Lowerings of operators, verified, against ONNX Runtime 1.2x: for inputs from one generator, the
// sum of the results and their product with cos(0.7 i), which sees every element's place.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tenon/graph/builder.h"
#include "tenon/graph/transforms.h"
#include "tenon/graph/verifier.h"
#include "tenon/interp/interpreter.h"
#include "tenon/support/narrow_float.h"
#include "tenon/tir/analysis/verifier.h"

namespace tenon::graph {
namespace {

Value rnd(const std::vector<int64_t>& shape, uint32_t seed) {
  std::vector<float> values(static_cast<size_t>(checked_elements(shape)));
  uint32_t state = seed * 2654435761U + 12345U;
  for (float& value : values) {
    state = state * 1664525U + 1013904223U;
    value = static_cast<float>(state >> 8) / static_cast<float>(1 << 23) - 1.0F;
  }
  return make<Constant>(TensorData::of<float>(kFloat32, shape, values));
}
Value ints(const std::vector<int64_t>& shape, const std::vector<int64_t>& values) {
  return make<Constant>(TensorData::of<int64_t>(kInt64, shape, values));
}
std::vector<float> floats(const TensorData& data) {
  std::vector<float> values;
  for (int64_t i = 0; i < data.elements(); ++i)
    values.push_back(static_cast<float>(data.at_float(i)));
  return values;
}
Value dims(const std::vector<int64_t>& values) { return make<ShapeExpr>(to_exprs(values)); }

// Runs a function of the call on its arguments, which become parameters.
std::vector<Ref<TensorData>> run(const std::string& op, std::vector<Value> args, Attrs attrs = {},
                                 bool constant_args = false) {
  IRModule module;
  BlockBuilder builder(module);
  std::vector<Ref<Var>> params;
  std::vector<Ref<TensorData>> inputs;
  for (Value& arg : args) {
    const auto* constant = arg.as<Constant>();
    if (!constant || constant_args) continue;
    inputs.push_back(constant->data);
    params.push_back(make<Var>(fmt::format("p{}", params.size()), constant->type));
    arg = params.back();
  }
  builder.begin_function(params);
  const Value result = builder.op(op, std::move(args), std::move(attrs));
  module.set("main", builder.end_function(result));
  module = legalize_ops(std::move(module));
  Diagnostics diagnostics;
  verify(module, diagnostics);
  tir::verify(module, diagnostics);
  diagnostics.throw_if_any();
  return interp::Interpreter(module).run_main(inputs);
}

void expect(const std::vector<Ref<TensorData>>& outputs, size_t index,
            const std::vector<int64_t>& shape, double sum, double dot) {
  ASSERT_LT(index, outputs.size());
  const Ref<TensorData>& data = outputs[index];
  EXPECT_EQ(data->shape, shape);
  double actual_sum = 0, actual_dot = 0;
  for (int64_t i = 0; i < data->elements(); ++i) {
    actual_sum += data->at_float(i);
    actual_dot += data->at_float(i) * std::cos(0.7 * static_cast<double>(i));
  }
  // Sums of float32 results in another order, over up to a few hundred elements.
  EXPECT_NEAR(actual_sum, sum, 2e-5 * (1 + std::fabs(sum)));
  EXPECT_NEAR(actual_dot, dot, 2e-5 * (1 + std::fabs(dot)));
}

std::vector<Value> recurrent_args(int64_t gates, bool cell) {
  std::vector<Value> args = {rnd({3, 2, 3}, 1), rnd({2, gates * 2, 3}, 2),
                             rnd({2, gates * 2, 2}, 3), rnd({2, 2 * gates * 2}, 4),
                             rnd({2, 2, 2}, 5)};
  if (cell) args.push_back(rnd({2, 2, 2}, 6));
  return args;
}

TEST(OpValues, Recurrent) {
  const Attrs both = {{"hidden_size", 2}, {"direction", "bidirectional"}};
  const auto lstm = run("nn.lstm", recurrent_args(4, true), both);
  expect(lstm, 0, {3, 2, 2, 2}, -2.165546, 0.1164284);
  expect(lstm, 1, {2, 2, 2}, -0.534993, -0.07031823);
  expect(lstm, 2, {2, 2, 2}, -0.96598, -0.3615676);
  const auto gru = run("nn.gru", recurrent_args(3, false), both);
  expect(gru, 0, {3, 2, 2, 2}, -8.863195, 1.994428);
  expect(gru, 1, {2, 2, 2}, -3.769878, 1.423656);
  const auto after =
      run("nn.gru", recurrent_args(3, false), both.with("linear_before_reset", true));
  expect(after, 0, {3, 2, 2, 2}, -6.569315, -0.1591642);
  expect(after, 1, {2, 2, 2}, -3.038851, 0.5549519);
  const auto rnn = run("nn.rnn", recurrent_args(1, false), both);
  expect(rnn, 0, {3, 2, 2, 2}, -3.266252, -2.731498);
  expect(rnn, 1, {2, 2, 2}, -0.6093646, -1.259251);
}

const std::vector<int64_t> kImage = {2, 4, 7, 5};

TEST(OpValues, Convolutions) {
  expect(run("nn.conv2d", {rnd(kImage, 1), rnd({6, 2, 3, 3}, 2)},
             {{"groups", 2},
              {"strides", std::vector<int64_t>{2, 1}},
              {"padding", std::vector<int64_t>{1, 2, 0, 1}},
              {"dilation", std::vector<int64_t>{1, 2}}}),
         0, {2, 6, 3, 4}, 11.73571, 10.64878);
  expect(run("nn.conv2d_transpose", {rnd(kImage, 1), rnd({4, 3, 3, 2}, 3)},
             {{"groups", 2},
              {"strides", std::vector<int64_t>{2, 3}},
              {"padding", std::vector<int64_t>{1, 0, 2, 1}},
              {"output_padding", std::vector<int64_t>{1, 0}},
              {"dilation", std::vector<int64_t>{1, 2}}}),
         0, {2, 6, 13, 14}, 7.993258, -0.1715408);
}

TEST(OpValues, Pools) {
  const Attrs window = {{"pool_size", std::vector<int64_t>{3, 2}},
                        {"strides", 2},
                        {"padding", std::vector<int64_t>{1, 0, 1, 1}}};
  expect(run("nn.max_pool2d", {rnd(kImage, 1)}, window.with("ceil_mode", true)), 0, {2, 4, 4, 3},
         55.50544, -0.7394185);
  expect(run("nn.avg_pool2d", {rnd(kImage, 1)}, window.with("ceil_mode", true)), 0, {2, 4, 4, 3},
         -0.08986881, -2.116699);
  expect(run("nn.avg_pool2d", {rnd(kImage, 1)}, window.with("count_include_pad", true)), 0,
         {2, 4, 4, 3}, 0.8992756, -1.452245);
}

TEST(OpValues, Normalisations) {
  expect(run("nn.softmax", {rnd(kImage, 1)}, {{"axis", 1}}), 0, kImage, 70, -0.3694174);
  expect(
      run("nn.lrn", {rnd(kImage, 1)}, {{"size", 3}, {"alpha", 0.5}, {"beta", 0.7}, {"bias", 1.5}}),
      0, kImage, -0.1060438, -1.066056);
  expect(run("nn.instance_norm", {rnd(kImage, 1), rnd({4}, 2), rnd({4}, 3)}), 0, kImage, 13.25747,
         -1.768034);
}

TEST(OpValues, PiecesOfTensors) {
  expect(run("strided_slice",
             {rnd(kImage, 1), dims({2, 3}), dims({5, -1}), dims({-100, 0}), dims({-2, -1})}),
         0, {2, 4, 3, 4}, -1.460041, 7.218847);
  expect(
      run("nn.pad", {rnd(kImage, 1)},
          {{"pad_width", std::vector<int64_t>{0, 0, 0, 0, 2, 3, 1, 2}}, {"pad_mode", "reflect"}}),
      0, {2, 4, 12, 8}, -3.293308, -5.517173);
  expect(run("nn.depth_to_space", {rnd(kImage, 1)}, {{"block_size", 2}, {"mode", "CRD"}}), 0,
         {2, 1, 14, 10}, -0.147542, -3.762142);
  expect(run("take", {rnd(kImage, 1), ints({2, 2}, {0, -1, 3, 1})}, {{"axis", 1}}), 0,
         {2, 2, 2, 7, 5}, -7.897298, 4.203761);
  expect(run("scatter_elements", {rnd({3, 3}, 1), ints({2, 3}, {1, 0, 2, 1, 2, 0}), rnd({2, 3}, 2)},
             {{"axis", 0}, {"reduction", "add"}}),
         0, {3, 3}, -2.597619, 2.471834);
}

TEST(OpValues, Reductions) {
  expect(run("cumsum", {rnd(kImage, 1)}, {{"axis", 2}, {"exclusive", true}, {"reverse", true}}), 0,
         kImage, -4.216352, 2.583364);
  expect(run("argmax", {rnd(kImage, 1)}, {{"axis", std::vector<int64_t>{2}}}), 0, {2, 4, 5}, 120,
         -3.598181);
  expect(run("matmul", {rnd({2, 1, 3, 4}, 1), rnd({5, 4, 2}, 2)}), 0, {2, 5, 3, 2}, 0.5643487,
         -0.9598416);
}

TEST(OpValues, ReductionsOverNothing) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto first = [](const std::string& op) {
    const auto results = run(op, {rnd({2, 0, 3}, 1)}, {{"axis", std::vector<int64_t>{1}}});
    EXPECT_EQ(results.at(0)->shape, (std::vector<int64_t>{2, 3})) << op;
    EXPECT_EQ(results.at(0)->at_float(5), results.at(0)->at_float(0)) << op;
    return results.at(0)->at_float(0);
  };
  EXPECT_EQ(first("sum"), 0);
  EXPECT_EQ(first("prod"), 1);
  EXPECT_EQ(first("max"), -kInfinity);
  EXPECT_EQ(first("min"), kInfinity);
  EXPECT_EQ(first("logsumexp"), -kInfinity);
}

TEST(OpValues, Sorting) {
  const auto least = run("topk", {rnd(kImage, 1)}, {{"k", 3}, {"axis", 2}, {"largest", false}});
  expect(least, 0, {2, 4, 3, 5}, -58.19551, -1.343741);
  expect(least, 1, {2, 4, 3, 5}, 376, -22.03277);
}

TEST(OpValues, WhatIsNotZero) {
  const Value x = ints({2, 3}, {0, 5, 0, -1, 0, 7});
  EXPECT_EQ(floats(*run("nonzero", {x, dims({3})}).at(0)), (std::vector<float>{0, 1, 1, 1, 0, 2}));
  EXPECT_EQ(floats(*run("nonzero", {x, dims({2})}).at(0)), (std::vector<float>{0, 1, 1, 0}));
  EXPECT_EQ(floats(*run("nonzero", {x, dims({4})}).at(0)),
            (std::vector<float>{0, 1, 1, 0, 1, 0, 2, 0}));
}

TEST(OpValues, DistinctElements) {
  const Value rows = ints({4, 2}, {3, 1, 2, 9, 3, 1, 2, 8});
  const auto sorted = run("unique_positions", {rows});
  EXPECT_EQ(floats(*sorted.at(0)), (std::vector<float>{3, 1, 0, 0}));
  EXPECT_EQ(floats(*sorted.at(1)), (std::vector<float>{2, 1, 2, 0}));
  EXPECT_EQ(floats(*sorted.at(2)), (std::vector<float>{1, 1, 2, 0}));
  EXPECT_EQ(floats(*sorted.at(3)), (std::vector<float>{3}));
  const auto first = run("unique_positions", {rows}, {{"sorted", false}});
  EXPECT_EQ(floats(*first.at(0)), (std::vector<float>{0, 1, 3, 0}));
  EXPECT_EQ(floats(*first.at(1)), (std::vector<float>{0, 1, 0, 2}));
  EXPECT_EQ(floats(*first.at(2)), (std::vector<float>{2, 1, 1, 0}));
}

TEST(OpValues, BoxesThatAreKept) {
  const auto number = [](double value) {
    return make<Constant>(TensorData::of<float>(kFloat32, {}, {static_cast<float>(value)}));
  };
  // Two that share three quarters, one beside them; corners in any order.
  const Value boxes = make<Constant>(
      TensorData::of<float>(kFloat32, {1, 3, 4}, {0, 0, 4, 4, 4, 4, 0, 1, 0, 8, 4, 9}));
  const Value scores = make<Constant>(
      TensorData::of<float>(kFloat32, {1, 2, 3}, {0.5F, 0.9F, 0.1F, 0.4F, 0.3F, 0.4F}));
  const auto kept = [&](double overlap, double least) {
    const auto results =
        run("vision.all_class_non_max_suppression",
            {boxes, scores, make<PrimValue>(int64(2)), number(overlap), number(least)});
    const auto count = static_cast<size_t>(results.at(1)->at_float(0));
    std::vector<float> rows = floats(*results.at(0));
    EXPECT_EQ(rows.size(), 12U);
    rows.resize(count * 3);
    return rows;
  };
  EXPECT_EQ(kept(0.75, 0), (std::vector<float>{0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 1, 2}));
  EXPECT_EQ(kept(0.5, 0), (std::vector<float>{0, 0, 1, 0, 0, 2, 0, 1, 0, 0, 1, 2}));
  EXPECT_EQ(kept(0.5, 0.45), (std::vector<float>{0, 0, 1}));
  EXPECT_THROW(kept(1.5, 0), CompileError);
}

// Of many boxes those that overlap none before them, all compared with all. Some are far from others,
// some end beyond all, one has no place.
TEST(OpValues, BoxesThatAreKeptOfMany) {
  constexpr size_t kCount = 400;
  constexpr float kOverlap = 0.25F;
  std::vector<float> boxes, scores;
  uint32_t state = 1;
  const auto next = [&] {
    return static_cast<float>((state = state * 1664525 + 1013904223) >> 16);
  };
  for (size_t i = 0; i < kCount; ++i) {
    const float far = 100.0F * static_cast<float>(i % 7);
    const float y = next() / 4096.0F, x = far + next() / 2048.0F;
    const float wide = i % 50 == 3 ? 150.0F : 6.0F;
    for (const float corner : {y, x, y + next() / 8192.0F, x + wide * next() / 65536.0F})
      boxes.push_back(corner);
    scores.push_back(next());
  }
  boxes[41] = std::numeric_limits<float>::quiet_NaN();
  std::vector<size_t> order(kCount), kept;
  for (size_t i = 0; i < kCount; ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return scores[a] > scores[b] || (scores[a] == scores[b] && a < b);
  });
  const auto overlaps = [&](size_t a, size_t b) {
    const float *p = &boxes[4 * a], *q = &boxes[4 * b];
    const float rows = std::min(p[2], q[2]) - std::max(p[0], q[0]);
    const float columns = std::min(p[3], q[3]) - std::max(p[1], q[1]);
    if (!(rows > 0 && columns > 0)) return false;
    const float both = rows * columns;
    const float all = (p[2] - p[0]) * (p[3] - p[1]) + (q[2] - q[0]) * (q[3] - q[1]) - both;
    return both / all > kOverlap;
  };
  for (const size_t i : order)
    if (std::none_of(kept.begin(), kept.end(), [&](size_t k) { return overlaps(i, k); }))
      kept.push_back(i);
  const auto size = static_cast<int64_t>(kCount);
  const auto results = run("vision.all_class_non_max_suppression",
                           {make<Constant>(TensorData::of<float>(kFloat32, {1, size, 4}, boxes)),
                            make<Constant>(TensorData::of<float>(kFloat32, {1, 1, size}, scores)),
                            make<PrimValue>(int64(size)),
                            make<Constant>(TensorData::of<float>(kFloat32, {}, {kOverlap}))});
  ASSERT_EQ(results.at(1)->at_float(0), static_cast<double>(kept.size()));
  for (size_t i = 0; i < kept.size(); ++i)
    EXPECT_EQ(results.at(0)->at_int(static_cast<int64_t>(3 * i + 2)),
              static_cast<int64_t>(kept[i]));
}

TEST(OpValues, Resizes) {
  const auto resize = [](Attrs attrs) {
    return run("image.resize2d", {rnd(kImage, 1), dims({10, 12})}, std::move(attrs));
  };
  const std::string mode = "coordinate_transformation_mode";
  const std::vector<int64_t> shape = {2, 4, 10, 12};
  expect(resize({{"method", "nearest_neighbor"}}), 0, shape, 1.365181, -21.56455);
  expect(
      resize({{"method", "nearest_neighbor"}, {mode, "asymmetric"}, {"rounding_method", "floor"}}),
      0, shape, 0.5131128, 2.071924);
  expect(resize({{mode, "align_corners"}}), 0, shape, -6.65716, -13.32664);
  expect(resize({{mode, "pytorch_half_pixel"}}), 0, shape, -4.053807, -11.52079);
  expect(resize({{"method", "cubic"}, {"cubic_exclude", 1}}), 0, shape, -0.3002858, -15.98586);
  expect(resize({{"method", "cubic"}}), 0, shape, -1.24587, -16.55954);
}

TEST(OpValues, ResizesOfEveryMode) {
  const auto antialias = run("image.resize", {rnd(kImage, 1), dims({3, 4})},
                             {{"axes", AttrList{2, 3}}, {"method", "cubic"}, {"antialias", true}});
  expect(antialias, 0, {2, 4, 3, 4}, -0.1120074, -0.7271805);
  const auto crop = run("image.resize", {rnd(kImage, 1), dims({4, 7})},
                        {{"axes", AttrList{-2, 3}},
                         {"coordinate_transformation_mode", "tf_crop_and_resize"},
                         {"roi", AttrList{0.2, -0.1, 0.9, 1.2}},
                         {"extrapolation_value", 2.0}});
  expect(crop, 0, {2, 4, 4, 7}, 126.7496, -0.6486783);
}

TEST(OpValues, GridSamples) {
  Value grid = rnd({2, 2, 3, 4}, 2);
  std::vector<float> places = floats(*grid.as<Constant>()->data);
  for (float& place : places) place *= 1.5F;
  grid = make<Constant>(TensorData::of<float>(kFloat32, {2, 2, 3, 4}, places));
  const auto sample = [&](const char* method, const char* padding, double sum, double dot) {
    SCOPED_TRACE(fmt::format("{} {}", method, padding));
    expect(run("image.grid_sample", {rnd(kImage, 1), grid},
               {{"method", method}, {"padding_mode", padding}}),
           0, {2, 4, 3, 4}, sum, dot);
  };
  sample("bilinear", "zeros", 0.6109333, -0.1185176);
  sample("bilinear", "border", -0.6436938, 1.022481);
  sample("bilinear", "reflection", 3.577152, 1.200187);
  sample("nearest", "zeros", -3.493438, -2.480349);
  sample("nearest", "border", -5.501985, -0.645948);
  sample("nearest", "reflection", 0.2917012, -0.8667526);
  sample("bicubic", "zeros", 0.6042469, -0.6445039);
  sample("bicubic", "border", -0.4352043, 0.6784137);
  sample("bicubic", "reflection", 3.852559, 0.8439275);
}

TEST(OpValues, Regions) {
  const Value rois = make<Constant>(TensorData::of<float>(
      kFloat32, {3, 5}, {0, .5F, .2F, 4, 5, 1, -1, 1, 3, 8, 1, 2, 2, 2.5F, 2.1F}));
  const Attrs attrs{{"pooled_size", AttrList{2, 3}}, {"spatial_scale", 0.8}};
  Attrs aligned = attrs;
  aligned.set("aligned", true);
  expect(run("vision.roi_align", {rnd(kImage, 1), rois}, aligned), 0, {3, 4, 2, 3}, 3.378209,
         -1.78744);
  expect(run("vision.roi_pool", {rnd(kImage, 1), rois}, attrs), 0, {3, 4, 2, 3}, 37.06565,
         2.638583);
  const Attrs window{{"pool_size", AttrList{3, 2}},
                     {"strides", AttrList{2, 1}},
                     {"padding", AttrList{1, 0, 1, 1}}};
  const auto pooled = run("nn.max_pool2d", {rnd(kImage, 1)}, window);
  expect(pooled, 0, {2, 4, 4, 5}, 95.32506, -1.03002);
  Attrs positions = window;
  positions.set("column_major", true);
  expect(run("nn.max_pool_positions", {rnd(kImage, 1), make<Constant>(pooled[0])}, positions), 0,
         {2, 4, 4, 5}, 22777, -477.3605);
}

TEST(OpValues, RegionsOfNoImage) {
  const auto rois = [](float image) {
    return make<Constant>(TensorData::of<float>(kFloat32, {1, 5}, {image, 0, 0, 4, 4}));
  };
  for (const float image : {-1.0F, 2.0F, std::numeric_limits<float>::quiet_NaN()})
    EXPECT_THROW(
        run("vision.roi_align", {rnd(kImage, 1), rois(image)}, {{"pooled_size", AttrList{1, 1}}}),
        CompileError);
}

TEST(OpValues, Columns) {
  expect(run("nn.col2im", {rnd({2, 12, 9}, 1), dims({4, 5})}, {{"block_size", AttrList{2, 3}}}), 0,
         {2, 2, 4, 5}, 2.549252, 5.251349);
  const auto columns =
      run("nn.deformable_columns", {rnd(kImage, 1), rnd({2, 16, 6, 4}, 3), rnd({2, 8, 6, 4}, 4)},
          {{"kernel_size", AttrList{2, 2}}, {"groups", 2}});
  // With the weights and groups of a deformable convolution.
  const Value in_groups =
      make<Constant>(TensorData::of<float>(kFloat32, {2, 2, 8, 24}, floats(*columns[0])));
  const Value weights = make<Constant>(TensorData::of<float>(
      kFloat32, {2, 1, 8}, floats(*rnd({2, 2, 2, 2}, 2).as<Constant>()->data)));
  expect(run("matmul", {weights, in_groups}), 0, {2, 2, 1, 24}, -6.668236, -0.8113816);
}

TEST(OpValues, FourierTransforms) {
  expect(run("signal.dft", {rnd({2, 600, 2}, 1)}, {{"inverse", true}}), 0, {2, 600, 2}, -0.07702642,
         0.6922426);
  expect(run("signal.dft", {rnd({2, 7, 1}, 1)}, {{"onesided", true}}), 0, {2, 4, 2}, -5.115353,
         3.584801);
  expect(run("signal.dft", {rnd({1, 521, 1}, 1)}, {{"onesided", true}}), 0, {1, 261, 2}, -408.3988,
         216.7655);
  expect(run("signal.dft", {rnd({2, 5, 2}, 1)}, {{"onesided", true}, {"inverse", true}}), 0,
         {2, 8, 1}, -0.5338074, -0.3233349);
}

TEST(OpValues, Determinants) {
  expect(run("linalg.det", {rnd({3, 4, 4}, 1)}), 0, {3}, -0.4105411, -0.7951002);
}

TEST(OpValues, ProductsOfThree) {
  const Value operands =
      make<Tuple>(std::vector<Value>{rnd({3, 4}, 1), rnd({2, 4, 5}, 2), rnd({6, 5}, 3)});
  expect(run("einsum", {operands}, {{"subscripts", "ij,...jk,nk->...in"}}), 0, {2, 3, 6}, -3.32924,
         -6.972728);
}

TEST(OpValues, RecurrencesWithEveryOption) {
  const auto args = [](int64_t gates, bool cell) {
    std::vector<Value> all = recurrent_args(gates, cell);
    all.push_back(ints({2}, {3, 2}));
    return all;
  };
  std::vector<Value> with_peepholes = args(4, true);
  with_peepholes.push_back(rnd({2, 6}, 7));
  const auto lstm = run("nn.lstm", with_peepholes,
                        {{"hidden_size", 2},
                         {"direction", "bidirectional"},
                         {"clip", 0.5},
                         {"activations", AttrList{"hardsigmoid", "scaledtanh", "tanh",
                                                  "hardsigmoid", "scaledtanh", "tanh"}},
                         {"activation_alpha", AttrList{0.3, 1.2, 0.0, 0.3, 1.2, 0.0}},
                         {"activation_beta", AttrList{0.4, 0.6, 0.0, 0.4, 0.6, 0.0}}});
  expect(lstm, 0, {3, 2, 2, 2}, -0.8963572, 0.03377171);
  expect(lstm, 1, {2, 2, 2}, -0.22722, -0.0566952);
  expect(lstm, 2, {2, 2, 2}, -0.5124739, -0.08770506);
  const auto gru = run("nn.gru", args(3, false),
                       {{"hidden_size", 2},
                        {"direction", "bidirectional"},
                        {"clip", 0.5},
                        {"linear_before_reset", true}});
  expect(gru, 0, {3, 2, 2, 2}, -5.153215, 0.4546785);
  expect(gru, 1, {2, 2, 2}, -2.072618, 0.5540068);
  const auto rnn = run("nn.rnn", args(1, false),
                       {{"hidden_size", 2},
                        {"direction", "bidirectional"},
                        {"activations", AttrList{"softsign", "elu"}},
                        {"activation_alpha", AttrList{0.0, 0.5}}});
  expect(rnn, 0, {3, 2, 2, 2}, 0.8226378, -2.697142);
  expect(rnn, 1, {2, 2, 2}, 1.067002, -1.442504);
}

TEST(OpValues, SortsOfLongAxes) {
  expect(run("sort", {rnd({2, 100}, 1)}, {{"descending", true}}), 0, {2, 100}, 1.57992, -2.381661);
  expect(run("argsort", {rnd({2, 100}, 1)}, {{"descending", true}}), 0, {2, 100}, 9900, -6.421464);
}

// The words of Threefry-2x32 with 20 rounds, of the paper's published vectors.
TEST(OpValues, RandomNumbers) {
  const auto data = run("random.uniform", {dims({2})}, {{"seed", 0}});
  EXPECT_EQ(data[0]->at_float(0), static_cast<double>(0x6b200159U >> 8) / (1 << 24));
  const auto wide = run("random.uniform", {dims({1})}, {{"seed", 0}, {"dtype", kFloat64}});
  const double words =
      static_cast<double>(0x6b200159U >> 5) * (1 << 26) + static_cast<double>(0x99ba4efeU >> 6);
  EXPECT_EQ(wide[0]->at_float(0), words / static_cast<double>(int64_t{1} << 53));
  const auto normal = run("random.normal", {dims({100, 100})}, {{"seed", 7}});
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < 10000; ++i) {
    sum += normal[0]->at_float(i);
    squares += normal[0]->at_float(i) * normal[0]->at_float(i);
  }
  EXPECT_NEAR(sum / 10000, 0, 0.05);
  EXPECT_NEAR(squares / 10000, 1, 0.05);
}

TEST(OpValues, Quantisation) {
  const Value scale =
      make<Constant>(TensorData::of<float>(kFloat32, {4}, {.01F, .02F, .004F, .1F}));
  const Value zero = make<Constant>(TensorData::of<int8_t>(kInt8, {4}, {1, -3, 5, 0}));
  expect(run("quantize", {rnd(kImage, 1), scale, zero}, {{"axis", 1}}), 0, kImage, 290, -471.6514);
  // 0.524902 / 0.05 is 10.498 with the scale in float32, 10.502 with it rounded to float16.
  const auto half =
      run("quantize",
          {make<Constant>(TensorData::of<uint16_t>(kFloat16, {1}, {double_to_half(0.524902)})),
           make<Constant>(TensorData::of<float>(kFloat32, {1}, {0.05F})),
           make<Constant>(TensorData::of<int8_t>(kInt8, {1}, {3}))});
  EXPECT_EQ(half.at(0)->at_float(0), 13);
}

TEST(OpValues, MoreNormalisations) {
  expect(run("nn.layer_norm", {rnd(kImage, 1), rnd({7, 5}, 2), rnd({7, 5}, 3)},
             {{"axes", std::vector<int64_t>{2, 3}}}),
         0, kImage, 42.44242, 9.125906);
  expect(run("nn.group_norm", {rnd(kImage, 1), rnd({4}, 2), rnd({4}, 3)}, {{"num_groups", 2}}), 0,
         kImage, 14.87114, -1.911016);
  expect(run("nn.log_softmax", {rnd(kImage, 1)}), 0, kImage, -486.1478, -0.8726196);
  expect(run("logsumexp", {rnd(kImage, 1)},
             {{"axis", std::vector<int64_t>{1, 3}}, {"keepdims", true}}),
         0, {2, 1, 7, 1}, 43.97808, 1.411982);
}

TEST(OpValues, Elementwise) {
  expect(run("nn.softplus", {rnd(kImage, 1)}), 0, kImage, 204.5985, 0.3566847);
  expect(run("nn.celu", {rnd(kImage, 1)}, {{"alpha", 0.7}}), 0, kImage, 22.4784, -1.457268);
  expect(run("nn.mish", {rnd(kImage, 1)}), 0, kImage, 25.59998, -0.8876143);
  expect(run("nn.hardswish", {rnd(kImage, 1)}), 0, kImage, 14.38136, -0.7589794);
  expect(run("nn.selu", {rnd(kImage, 1)}), 0, kImage, -17.12163, -2.339101);
}

TEST(OpValues, BoundsOutsideAnIntegerType) {
  const std::vector<uint8_t> all = {0, 1, 127, 128, 255};
  const auto clipped = [&](int64_t least, int64_t most) {
    const auto results = run("clip", {make<Constant>(TensorData::of<uint8_t>(kUInt8, {5}, all)),
                                      make<PrimValue>(int64(least)), make<PrimValue>(int64(most))});
    return results.at(0)->to_ints();
  };
  EXPECT_EQ(clipped(-3, 300), (std::vector<int64_t>{0, 1, 127, 128, 255}));
  EXPECT_EQ(clipped(1, 200), (std::vector<int64_t>{1, 1, 127, 128, 200}));
  EXPECT_EQ(clipped(300, 400), (std::vector<int64_t>{255, 255, 255, 255, 255}));
}

TEST(OpValues, SumsOfExponentialsOfInfinities) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto floats = [](const std::vector<float>& values) {
    return make<Constant>(TensorData::of<float>(kFloat32, {4}, values));
  };
  const auto results = run("log_add_exp", {floats({kInfinity, -kInfinity, -kInfinity, 1}),
                                           floats({kInfinity, -kInfinity, kInfinity, -kInfinity})});
  EXPECT_EQ(results.at(0)->at_float(0), kInfinity);
  EXPECT_EQ(results.at(0)->at_float(1), -kInfinity);
  EXPECT_EQ(results.at(0)->at_float(2), kInfinity);
  EXPECT_EQ(results.at(0)->at_float(3), 1);
}

TEST(OpValues, IndexVectorsAndSubscripts) {
  expect(run("gather_nd", {rnd({2, 3, 4}, 1), ints({2, 1, 2}, {0, 1, 2, -1})}, {{"batch_dims", 1}}),
         0, {2, 1}, 0.8263973, 0.8310479);
  expect(run("reverse_sequence", {rnd({4, 3, 2}, 1), ints({3}, {2, 4, 1})},
             {{"seq_axis", 0}, {"batch_axis", 1}}),
         0, {4, 3, 2}, -0.5901294, 2.798084);
  expect(run("einsum", {make<Tuple>(std::vector<Value>{rnd({2, 3, 4}, 1), rnd({2, 4, 5}, 2)})},
             {{"subscripts", "bij,bjk->kib"}}),
         0, {5, 3, 2}, -1.396252, 4.156024);
}

// The interpreter knows every value: bounds may come from anywhere.
TEST(OpValues, SlicesByTensors) {
  const Value x = make<Constant>(TensorData::of<int64_t>(kInt64, {4}, {10, 11, 12, 13}));
  const auto call =
      call_op("dynamic_strided_slice", {x, ints({1}, {3}), ints({1}, {0}), ints({1}, {-2})});
  const IRModule module;
  const auto result = interp::Interpreter(module).evaluate_call(call);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->as<Constant>()->data->to_ints(), (std::vector<int64_t>{13, 11}));
}

TEST(OpValues, RunTimeIndicesAreChecked) {
  try {
    (void)run("take", {rnd({4}, 1), ints({2}, {0, 4})}, {{"axis", 0}});
    FAIL() << "no error";
  } catch (const CompileError& error) {
    EXPECT_NE(std::string(error.what()).find("`take`: an index is outside its axis"),
              std::string::npos)
        << error.what();
  }
  try {
    (void)run("take", {rnd({4}, 1), ints({2}, {0, -5})}, {{"axis", 0}}, true);
    FAIL() << "no error";
  } catch (const CompileError& error) {
    EXPECT_EQ(error.first().message, "`take` has index -5 into an axis of 4");
  }
}

}  // namespace
}  // namespace tenon::graph
