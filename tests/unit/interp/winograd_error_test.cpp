// SPDX-License-Identifier: Apache-2.0
// How far Winograd's forms are from exact sums in single precision: the bounds that docs/design/
// 0016-winograd.md states, against sums in double precision.
#include <gtest/gtest.h>

#include <cmath>

#include "tenon/interp/interpreter.h"
#include "tenon/tir/compute.h"
#include "tenon/tir/schedule/schedule.h"
#include "tenon/tir/schedule/winograd_form.h"

namespace tenon::tir {
namespace {

struct Layer {
  int64_t channels, filters, size;  // of outputs; the data has 2 more rows and columns
};

std::vector<float> random_values(int64_t count, uint32_t seed, float scale) {
  uint32_t state = seed * 2654435761U + 12345U;
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) {
    state = state * 1664525U + 1013904223U;
    value = scale * (static_cast<float>(state >> 8) / static_cast<float>(1 << 23) - 1.0F);
  }
  return values;
}

Ref<PrimFunc> convolution(const Layer& layer) {
  KernelBuilder kernel;
  const Operand x =
      kernel.input("x", to_exprs({layer.channels, layer.size + 2, layer.size + 2}), kFloat32);
  const Operand w = kernel.input("w", to_exprs({layer.filters, layer.channels, 3, 3}), kFloat32);
  const Operand y = kernel.reduce(
      "conv", to_exprs({layer.filters, layer.size, layer.size}), to_exprs({layer.channels, 3, 3}),
      sum_reducer(), [&](const Indices& i, const Indices& k) {
        return x({k[0], i[1] + k[1], i[2] + k[2]}) * w({i[0], k[0], k[1], k[2]});
      });
  return kernel.finish({y}, {}).function;
}

/// The largest error of an output, relative to the largest output.
double error_of(const Layer& layer, int64_t tile) {
  const int64_t in = layer.size + 2;
  const auto x = random_values(layer.channels * in * in, 1, 1);
  const auto w = random_values(layer.filters * layer.channels * 9, 2,
                               1 / std::sqrt(static_cast<float>(layer.channels)));
  Schedule schedule(convolution(layer));
  schedule.winograd(schedule.get_block("conv"), tile, 8);
  IRModule module;
  module.set("conv", schedule.func());
  const std::vector<int64_t> shape = {layer.filters, layer.size, layer.size};
  const auto count = static_cast<size_t>(layer.filters * layer.size * layer.size);
  const auto result =
      interp::Interpreter(module, {})
          .run_prim_func("conv",
                         {TensorData::of<float>(kFloat32, {layer.channels, in, in}, x),
                          TensorData::of<float>(kFloat32, {layer.filters, layer.channels, 3, 3}, w),
                          TensorData::of<float>(kFloat32, shape, std::vector<float>(count))},
                         {})
          .back();
  double worst = 0, largest = 0;
  size_t at = 0;
  for (int64_t f = 0; f < layer.filters; ++f)
    for (int64_t r = 0; r < layer.size; ++r)
      for (int64_t c = 0; c < layer.size; ++c) {
        double sum = 0;
        for (int64_t k = 0; k < layer.channels; ++k)
          for (int64_t i = 0; i < 3; ++i)
            for (int64_t j = 0; j < 3; ++j)
              sum += static_cast<double>(x[static_cast<size_t>((k * in + r + i) * in + c + j)]) *
                     w[static_cast<size_t>(((f * layer.channels + k) * 3 + i) * 3 + j)];
        largest = std::max(largest, std::abs(sum));
        worst = std::max(worst, std::abs(sum - result->as_span<float>()[at++]));
      }
  return worst / largest;
}

TEST(WinogradError, StaysBelowItsBound) {
  for (const Layer& layer :
       {Layer{3, 4, 9}, Layer{16, 8, 14}, Layer{64, 16, 14}, Layer{256, 8, 13}})
    for (const int64_t tile : {2, 4, 6}) {
      const double error = error_of(layer, tile);
      RecordProperty(fmt::format("F{}_of_{}", tile, layer.channels), fmt::format("{:.2g}", error));
      EXPECT_LT(error, winograd_form(tile)->epsilon) << layer.channels << " channels, F" << tile;
      EXPECT_GT(error, 0);
    }
}

}  // namespace
}  // namespace tenon::tir
