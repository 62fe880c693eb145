// SPDX-License-Identifier: Apache-2.0
// Modules and kernels as people write them, and the examples' networks, for every machine of the
// list, against the interpreter; for plain C the test `modules` runs them.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "run.h"
#include "tenon/driver/compiler.h"
#include "tenon/driver/entry.h"
#include "tenon/driver/executable.h"
#include "tenon/driver/expectation.h"
#include "tenon/driver/load.h"
#include "tenon/driver/tensors.h"
#include "tenon/interp/interpreter.h"

namespace tenon::testing_targets {
namespace {

// What runs by itself: `fail_` files are refused, errors/ and wrong/ are not looked at.
std::vector<std::filesystem::path> files() {
  std::vector<std::filesystem::path> out;
  const std::filesystem::path root = TENON_SOURCE_DIR;
  for (const char* folder : {"tests/modules", "tests/kernels"})
    for (const auto& entry : std::filesystem::directory_iterator(root / folder))
      if (entry.path().extension() == ".py" && entry.path().stem().string().rfind("fail_", 0) != 0)
        out.push_back(entry.path());
  for (const char* file : {"digits/digits.onnx", "digits/digits_b1.onnx", "kernel_calls/tiles.py",
                           "library_calls/network.onnx", "own_kernel/classifier.onnx"})
    out.push_back(root / "examples" / file);
  std::sort(out.begin(), out.end());
  return out;
}

// Equal by the rule that holds for every comparison with the interpreter.
void expect_interpreters_numbers(const IRModule& module, const Target& target) {
  const Signature signature = signature_of(module);
  InputOptions options;
  for (const Port& port : signature.inputs)
    for (const PortDim& dim : port.dims)
      if (!dim.symbol.empty()) options.dims[dim.symbol] = 5;
  options.seed = 1;
  options.meanings = named_meanings(module);
  options.values = Values::kScales;
  const Tensors inputs = make_inputs(signature, options);
  Expectation expected(interpreted(module)->run(inputs), longest_sum(module), [&](uint64_t seed) {
    interp::Options rounding;
    rounding.rounding_seed = seed;
    return interp::Interpreter(module, std::move(rounding)).run_main(inputs);
  });
  const Tensors got = run_for(module, target, inputs);
  ASSERT_EQ(got.size(), expected.outputs().size());
  for (size_t i = 0; i < got.size(); ++i) {
    const auto wrong = expected.mismatch(i, *got[i]);
    EXPECT_FALSE(wrong) << "output " << i << ": " << wrong->text;
  }
}

class Modules : public testing::TestWithParam<TestTarget> {};

TEST_P(Modules, GiveTheInterpretersNumbers) {
  const Target target = resolve(std::string(GetParam().description));
  ASSERT_GE(files().size(), 80U);
  for (const auto& file : files()) {
    SCOPED_TRACE(file.filename().string());
    try {
      expect_interpreters_numbers(with_entry(load_module(file.string())), target);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

// Sizes that are known only when part of the program has run: in programs of this process.
TEST(LateSizes, GiveTheInterpretersNumbers) {
  const std::filesystem::path folder =
      std::filesystem::path(TENON_SOURCE_DIR) / "tests/modules/late";
  size_t run = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder))
    for (const TestTarget& target : kTargets) {
      if (!std::string(target.description).starts_with("native") && target.name != "c") continue;
      SCOPED_TRACE(file.path().filename().string() + " for " + std::string(target.description));
      expect_interpreters_numbers(with_entry(load_module(file.path().string())),
                                  resolve(std::string(target.description)));
      ++run;
    }
  EXPECT_GE(run, 3U);
}

std::vector<TestTarget> machines() {
  std::vector<TestTarget> out(std::begin(kTargets), std::end(kTargets));
  std::erase_if(out, [](const TestTarget& one) { return one.name == "c"; });
  return out;
}

INSTANTIATE_TEST_SUITE_P(Targets, Modules, testing::ValuesIn(machines()),
                         [](const auto& info) { return name_of(info); });

}  // namespace
}  // namespace tenon::testing_targets
