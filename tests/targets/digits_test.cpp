// SPDX-License-Identifier: Apache-2.0
// Products of floats with weights of few bits, by digits (graph/ops/digits.cpp).
#include <gtest/gtest.h>

#include <cmath>

#include "run.h"
#include "tenon/driver/compiler.h"
#include "tenon/driver/executable.h"
#include "tenon/graph/transforms.h"
#include "tenon/script/parser.h"

namespace tenon::testing_targets {
namespace {

struct Problem {
  int64_t bits, block, blocks, units;
  bool zeros;
  int64_t depth() const { return block * blocks; }
  int64_t bytes() const { return block * bits / 8; }
};

const Problem kProblems[] = {{4, 32, 3, 37, false}, {4, 16, 2, 48, true},  {2, 64, 2, 33, true},
                             {8, 32, 2, 17, false}, {8, 256, 1, 16, true}, {4, 24, 2, 16, false}};

IRModule product_of(const Problem& p) {
  const std::string zeros =
      p.zeros ? fmt::format(", z: R.Tensor(({}, {}), \"uint8\")", p.blocks, p.units) : "";
  return script::parse_module(fmt::format(
      "@I.ir_module\nclass Module:\n    @R.function\n"
      "    def main(x: R.Tensor((\"n\", {}), \"float32\"), b: R.Tensor(({}, {}, {}), \"uint8\"),\n"
      "             s: R.Tensor(({}, {}), \"float32\"){}):\n"
      "        n = T.int64()\n        with R.dataflow():\n"
      "            y = R.nn.matmul_nbits(x, b, s{}, bits={})\n"
      "            R.output(y)\n        return y\n",
      p.depth(), p.blocks, p.bytes(), p.units, p.blocks, p.units, zeros, p.zeros ? ", z" : "",
      p.bits));
}

/// Weights, scales and zero points, by name.
std::map<std::string, Ref<TensorData>> weights_of(const Problem& p) {
  std::vector<float> scales;
  for (int64_t i = 0; i < p.blocks * p.units; ++i)
    scales.push_back(static_cast<float>(i * 53 % 97) / 512 - 0.09F);
  std::map<std::string, Ref<TensorData>> weights = {
      {"b", random_elements(kUInt8, {p.blocks, p.bytes(), p.units}, 2, 256)},
      {"s", TensorData::of(kFloat32, {p.blocks, p.units}, scales)}};
  if (p.zeros) weights["z"] = random_elements(kUInt8, {p.blocks, p.units}, 3, int64_t{1} << p.bits);
  return weights;
}

/// Element (row, unit) of the product in float64, and what digits may be off: 2^-24 of each block's
/// largest number for each number, and as much for what is rounded to float32.
struct Expected {
  double value = 0, error = 0;
};
Expected expected_of(const Problem& p, const TensorData& x,
                     const std::map<std::string, Ref<TensorData>>& weights, int64_t row,
                     int64_t unit) {
  Expected all;
  for (int64_t block = 0; block < p.blocks; ++block) {
    const auto at = [&](const char* name) {
      return weights.at(name)->at_float(block * p.units + unit);
    };
    const double zero = p.zeros ? at("z") : static_cast<double>(int64_t{1} << (p.bits - 1));
    double sum = 0, largest = 0, weight_sum = 0, magnitudes = 0;
    for (int64_t k = 0; k < p.block; ++k) {
      const int64_t bit = k * p.bits;
      const int64_t byte = weights.at("b")->at_int((block * p.bytes() + bit / 8) * p.units + unit);
      const auto whole = static_cast<double>(byte >> (bit % 8) & ((int64_t{1} << p.bits) - 1));
      const double number = x.at_float(row * p.depth() + block * p.block + k);
      sum += number * (whole - zero);
      magnitudes += std::fabs(number) * (whole + zero);
      weight_sum += std::fabs(whole - zero);
      largest = std::max(largest, std::fabs(number));
    }
    const double scale = at("s");
    all.value += sum * scale;
    all.error += std::fabs(scale) * (largest * weight_sum + 8 * magnitudes) * 0x1p-24;
  }
  return all;
}

class Digits : public testing::TestWithParam<TestTarget> {};

TEST_P(Digits, AreAsExactAsSumsOfFloats) {
  const Target target = resolve(std::string(GetParam().description));
  for (const Problem& p : kProblems) {
    const auto weights = weights_of(p);
    const IRModule module = graph::bind_params(product_of(p), weights);
    for (const int64_t rows : {1, 3, 5, 9}) {
      std::vector<float> numbers;
      // Blocks of all magnitudes, of zeros, and of numbers whose reciprocals are infinite.
      for (int64_t i = 0; i < rows * p.depth(); ++i) {
        const int64_t kind = i / p.block % 4;
        const float size = kind == 0 ? 1 : kind == 1 ? 3e30F : kind == 2 ? 0 : 1e-39F;
        numbers.push_back(size * (static_cast<float>(i * 37 % 101) / 64 - 0.75F));
      }
      const Tensors inputs = {TensorData::of(kFloat32, {rows, p.depth()}, numbers)};
      const Ref<TensorData> got = run_for(module, target, inputs).at(0);
      for (int64_t i = 0; i < got->elements(); ++i) {
        const Expected expected = expected_of(p, *inputs[0], weights, i / p.units, i % p.units);
        EXPECT_NEAR(got->at_float(i), expected.value, expected.error + 1e-36)
            << p.bits << " bits in blocks of " << p.block << ", " << rows << " rows, element " << i;
      }
    }
  }
}

TEST_P(Digits, OfWhatIsNotFiniteAreNotFinite) {
  const Target target = resolve(std::string(GetParam().description));
  const Problem& p = kProblems[0];
  const IRModule module = graph::bind_params(product_of(p), weights_of(p));
  for (const float odd : {INFINITY, -INFINITY, NAN}) {
    std::vector<float> numbers(static_cast<size_t>(3 * p.depth()), 0.5F);
    numbers[static_cast<size_t>(p.depth() + p.block + 3)] = odd;
    const Tensors inputs = {TensorData::of(kFloat32, {3, p.depth()}, numbers)};
    const Ref<TensorData> got = run_for(module, target, inputs).at(0);
    for (int64_t i = 0; i < got->elements(); ++i)
      EXPECT_EQ(std::isfinite(got->at_float(i)), i / p.units != 1) << odd << ", element " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Digits, testing::ValuesIn(kTargets),
                         [](const auto& info) { return name_of(info); });

}  // namespace
}  // namespace tenon::testing_targets
