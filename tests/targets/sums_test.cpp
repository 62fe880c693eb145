// SPDX-License-Identifier: Apache-2.0
// Sums that are computed in another form than the one that they are written in.
#include <gtest/gtest.h>

#include <cmath>

#include "run.h"
#include "tenon/driver/compiler.h"
#include "tenon/driver/executable.h"
#include "tenon/script/parser.h"

namespace tenon::testing_targets {
namespace {

constexpr int64_t kTerms = 64, kUnits = 48;

class HoistedFactors : public testing::TestWithParam<TestTarget> {};

// Rows of numbers with some of them infinite, large or none; one scale is 0.
Tensors odd_inputs(int64_t rows) {
  constexpr float kHuge = 1e38F, kInfinity = INFINITY;
  const std::vector<std::vector<float>> kinds = {
      {kInfinity}, {}, {kInfinity, -kInfinity}, {kHuge, -kHuge, kHuge}, {NAN}};
  std::vector<float> x, scales;
  for (int64_t i = 0; i < rows * kTerms; ++i)
    x.push_back(static_cast<float>(i * 37 % 101) / 64 - 0.75F);
  for (int64_t row = 0; row < rows; ++row) {
    const auto& kind = kinds[static_cast<size_t>(row) % kinds.size()];
    for (size_t i = 0; i < kind.size(); ++i)
      x[static_cast<size_t>(row * kTerms) + 5 + 17 * i] = kind[i];
  }
  for (int64_t i = 0; i < 2 * kUnits; ++i)
    scales.push_back(i == 7 ? 0 : static_cast<float>(i * 53 % 97) / 512 - 0.09F);
  return {TensorData::of(kFloat32, {rows, kTerms}, x),
          random_elements(kUInt8, {2, kTerms / 4, kUnits}, 2, 256),
          TensorData::of(kFloat32, {2, kUnits}, scales)};
}

// The scales and the zero points of a product with weights of 4 bits are taken out of its sums: what
// is infinite or no number is so where the definition makes it so.
TEST_P(HoistedFactors, KeepInfinitiesAndNaNs) {
  const IRModule module = script::parse_module(
      "@I.ir_module\nclass Module:\n    @R.function\n"
      "    def main(x: R.Tensor((\"n\", 64), \"float32\"), b: R.Tensor((2, 16, 48), \"uint8\"),\n"
      "             s: R.Tensor((2, 48), \"float32\")):\n"
      "        n = T.int64()\n        with R.dataflow():\n"
      "            y = R.nn.matmul_nbits(x, b, s)\n"
      "            R.output(y)\n        return y\n");
  const Target target = resolve(std::string(GetParam().description));
  for (const int64_t rows : {1, 3, 5, 9}) {
    const Tensors inputs = odd_inputs(rows);
    const Ref<TensorData> expected = interpreted(module)->run(inputs).at(0);
    const Ref<TensorData> got = run_for(module, target, inputs).at(0);
    for (int64_t i = 0; i < expected->elements(); ++i) {
      const double a = got->at_float(i), b = expected->at_float(i);
      const bool same = std::isnan(b)   ? std::isnan(a)
                        : std::isinf(b) ? a == b
                                        : std::fabs(a - b) <= 1e-5 * std::max(1.0, std::fabs(b));
      EXPECT_TRUE(same) << rows << " rows, row " << i / kUnits << ", unit " << i % kUnits << ": "
                        << a << "; expected " << b;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, HoistedFactors, testing::ValuesIn(kTargets),
                         [](const auto& info) { return name_of(info); });

}  // namespace
}  // namespace tenon::testing_targets
