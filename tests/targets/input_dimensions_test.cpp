// SPDX-License-Identifier: Apache-2.0
// Inputs whose dimensions are expressions of the dimensions of other inputs: a program reads them
// from the tensors and checks them, as its host computes none.
#include <gtest/gtest.h>

#include "run.h"
#include "tenon/backend/llvm/host.h"
#include "tenon/driver/compare.h"
#include "tenon/driver/compiler.h"
#include "tenon/driver/executable.h"
#include "tenon/driver/tensors.h"
#include "tenon/driver/verify.h"
#include "tenon/script/parser.h"

namespace tenon::testing_targets {
namespace {

class InputDimensions : public testing::TestWithParam<TestTarget> {
 protected:
  InputDimensions()
      : module_(script::parse_module(
            "@I.ir_module\nclass Module:\n    @R.function\n"
            "    def main(x: R.Tensor((\"n\",), \"float32\"),\n"
            "             y: R.Tensor((\"n + 1\", \"n * 2\"), \"float32\")):\n"
            "        n = T.int64()\n        with R.dataflow():\n"
            "            v = R.sum(y, axis=[1])\n            w = R.concat([x, v], axis=0)\n"
            "            R.output(w)\n        return w\n")),
        target_(resolve(std::string(GetParam().description))) {
    verify_module(module_);
  }

  Tensors inputs(int64_t n, int64_t rows, int64_t columns) const {
    return {random_elements(kFloat32, {n}, 1), random_elements(kFloat32, {rows, columns}, 2)};
  }

  IRModule module_;
  Target target_;
};

TEST_P(InputDimensions, AreReadAndUsed) {
  for (const int64_t n : {1, 4, 9}) {
    const Tensors given = inputs(n, n + 1, 2 * n);
    const auto expected = interpreted(module_)->run(given);
    const auto got = run_for(module_, target_, given);
    const auto wrong = difference(*got.at(0), *expected.at(0), Tolerance{0, 0, 1e-5});
    EXPECT_FALSE(wrong) << "n = " << n << ": " << *wrong;
  }
}

TEST_P(InputDimensions, AreChecked) {
  const auto said = [&](const Tensors& given) {
    try {
      run_for(module_, target_, given);
    } catch (const std::exception& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  EXPECT_NE(said(inputs(4, 4, 8)).find("dimension 0 of input `y` is not n + 1"), std::string::npos)
      << said(inputs(4, 4, 8));
  EXPECT_NE(said(inputs(4, 5, 4)).find("dimension 1 of input `y` is not n * 2"), std::string::npos)
      << said(inputs(4, 5, 4));
}

// Rows and columns of one dimension in one loop: where that is 0, simplification finds a division
// by 0 in the start of the sums, which does not run.
TEST_P(InputDimensions, OfZeroLeaveDivisionsByZeroInCodeThatDoesNotRun) {
  const IRModule module = script::parse_module(
      "@I.ir_module\nclass Module:\n    @R.function\n"
      "    def main(x: R.Tensor((1, \"n\", \"m\", \"m\"), \"float32\"),\n"
      "             w: R.Tensor((7,), \"float32\")):\n"
      "        n = T.int64()\n        m = T.int64()\n        with R.dataflow():\n"
      "            y = R.einsum((x, w), subscripts=\"ijkl,k->ijk\")\n"
      "            R.output(y)\n        return y\n");
  const Tensors given = {random_elements(kFloat32, {1, 2, 7, 7}, 1),
                         random_elements(kFloat32, {7}, 2)};
  const auto expected = interpreted(module)->run(given);
  const auto got = run_for(module, target_, given);
  const auto wrong = difference(*got.at(0), *expected.at(0), Tolerance{0, 0, 1e-5});
  EXPECT_FALSE(wrong) << *wrong;
}

// A window that is larger than its axis. The other buffers leave the workspace a size above 0, in
// which a buffer of a negative one would take its neighbour's place.
TEST_P(InputDimensions, ThatGiveNegativeSizesAreAnError) {
  const IRModule module = script::parse_module(
      "@I.ir_module\nclass Module:\n    @R.function\n"
      "    def main(x: R.Tensor((1, 3, \"n\", 2), \"float32\"),\n"
      "             z: R.Tensor((40, 9), \"float32\")):\n"
      "        n = T.int64()\n        with R.dataflow():\n"
      "            a = R.nn.max_pool2d(x, pool_size=[3, 1])\n"
      "            b = R.permute_dims(a, axes=[3, 2, 1, 0])\n"
      "            c = R.nn.softmax(R.permute_dims(b), axis=1)\n"
      "            d = R.sum(c, axis=[2])\n"
      "            e = R.permute_dims(R.nn.softmax(z, axis=0))\n"
      "            f = R.nn.softmax(e, axis=0)\n"
      "            R.output(d, f)\n        return (d, f)\n");
  const auto outcome = [&](int64_t n) {
    try {
      const Tensors given = {random_elements(kFloat32, {1, 3, n, 2}, 1),
                             random_elements(kFloat32, {40, 9}, 2)};
      return std::to_string(run_for(module, target_, given).size()) + " results";
    } catch (const std::exception& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(outcome(5), "2 results");
  EXPECT_NE(outcome(1).find("n - 2, is negative"), std::string::npos) << outcome(1);
}

INSTANTIATE_TEST_SUITE_P(Targets, InputDimensions, testing::ValuesIn(kTargets),
                         [](const auto& info) { return name_of(info); });

TEST(RandomInputs, HaveTheSizesThatTheDeclarationComputes) {
  const IRModule module = script::parse_module(
      "@R.function\ndef main(x: R.Tensor((\"n\",), \"float32\"),\n"
      "         y: R.Tensor((\"n + 1\",), \"float32\")):\n    n = T.int64()\n"
      "    with R.dataflow():\n        w = R.concat([x, y], axis=0)\n        R.output(w)\n"
      "    return w\n");
  InputOptions options;
  options.meanings = named_meanings(module);
  options.dims = {{"n", 6}};
  const auto drawn = make_inputs(signature_of(module), options);
  EXPECT_EQ(drawn.at(0)->shape, std::vector<int64_t>{6});
  EXPECT_EQ(drawn.at(1)->shape, std::vector<int64_t>{7});
}

}  // namespace
}  // namespace tenon::testing_targets
