// SPDX-License-Identifier: Apache-2.0
// Accesses that only the run shows to be outside: lanes under a mask, and pointers that C functions
// are given.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run.h"
#include "tenon/driver/compare.h"
#include "tenon/driver/compiler.h"
#include "tenon/driver/entry.h"
#include "tenon/driver/executable.h"
#include "tenon/driver/tensors.h"
#include "tenon/driver/verify.h"
#include "tenon/script/parser.h"
#include "tenon/support/temporary_files.h"

namespace tenon::testing_targets {
namespace {

using testing::HasSubstr;

constexpr const char* kMaskedLoad = R"(
@T.prim_func
def main(x: T.Buffer((10,), "float32"), s: T.Buffer((3,), "int64"), y: T.Buffer((12,), "float32")):
    for i in range(3):
        y[T.ramp(i * 4, 1, 4)] = T.masked_load(x[T.ramp(s[i], 1, 4)], T.ramp(i * 4, 1, 4) < T.broadcast(10, 4), T.broadcast(T.float32(7), 4))
)";
constexpr const char* kMaskedStore = R"(
@T.prim_func
def main(x: T.Buffer((12,), "float32"), s: T.Buffer((3,), "int64"), y: T.Buffer((10,), "float32")):
    for i in range(10):
        y[i] = T.float32(0)
    for i in range(3):
        T.masked_store(y[T.ramp(s[i], 1, 4)], T.ramp(i * 4, 1, 4) < T.broadcast(10, 4), x[T.ramp(i * 4, 1, 4)])
)";
constexpr const char* kPointers = R"(
@T.prim_func
def main(x: T.Buffer((4, 4), "float32"), s: T.Buffer((3,), "int64"), y: T.Buffer((2,), "float64")):
    y[0] = T.call_extern("float64", "total", T.tvm_access_ptr("float32", x.data, s[0], s[1], 1), s[1])
    y[1] = T.call_extern("float64", "total", T.address_of(x[1, s[2]]), T.int64(1))
)";
constexpr const char* kTotal =
    "#include <stdint.h>\n"
    "double total(const float* x, int64_t n) {\n"
    "  double sum = 0;\n"
    "  for (int64_t i = 0; i < n; ++i) sum += x[i];\n"
    "  return sum;\n"
    "}\n";

class Accesses : public testing::TestWithParam<TestTarget> {
 protected:
  Accesses() : target_(resolve(std::string(GetParam().description))) {}

  // As the command line takes a PrimFunc.
  static IRModule module_of(const char* text) {
    IRModule module = with_entry(script::parse_module(text));
    verify_module(module);
    return module;
  }
  static Tensors inputs(std::vector<int64_t> shape, const std::vector<int64_t>& places) {
    return {random_elements(kFloat32, std::move(shape), 1),
            TensorData::of<int64_t>(kInt64, {static_cast<int64_t>(places.size())}, places)};
  }

  void expect_as_interpreted(const IRModule& module, const Tensors& given) const {
    const auto expected = interpreted(module, libraries_)->run(given);
    const auto got = run_for(module, target_, given, 2, libraries_);
    EXPECT_FALSE(exact_difference(*got.at(0), *expected.at(0)));
  }
  // What ends the run.
  std::string said(const IRModule& module, const Tensors& given) const {
    try {
      run_for(module, target_, given, 2, libraries_);
    } catch (const std::exception& error) {
      return error.what();
    }
    return "nothing";
  }

  Target target_;
  std::shared_ptr<const backend::Libraries> libraries_;
};

// The last vector is half full: lanes of which the mask says no may lie anywhere.
TEST_P(Accesses, OfLanesUnderAMaskAreChecked) {
  const IRModule loads = module_of(kMaskedLoad);
  expect_as_interpreted(loads, inputs({10}, {6, 0, 8}));
  EXPECT_THAT(said(loads, inputs({10}, {0, 4, 9})),
              HasSubstr("index 10 of dimension 0 of buffer `x`"));
  EXPECT_THAT(said(loads, inputs({10}, {-1, 4, 8})),
              HasSubstr("index -1 of dimension 0 of buffer `x`"));

  const IRModule stores = module_of(kMaskedStore);
  expect_as_interpreted(stores, inputs({12}, {6, 0, 8}));
  EXPECT_THAT(said(stores, inputs({12}, {0, 7, 8})),
              HasSubstr("index 10 of dimension 0 of buffer `y`"));
}

TEST_P(Accesses, OfCFunctionsAreCheckedWhereTheirPointersSay) {
  if (way_of(target_) == Way::kEmulated) GTEST_SKIP() << "the library is for this host";
  const std::string file = testing::TempDir() + "/total_" + std::string(GetParam().name) + ".c";
  write_file(file, kTotal);
  libraries_ = std::make_shared<const backend::Libraries>(std::vector<std::string>{file}, nullptr,
                                                          backend::Trust::kAnything);
  const IRModule module = module_of(kPointers);
  expect_as_interpreted(module, inputs({4, 4}, {12, 4, 3}));
  expect_as_interpreted(module, inputs({4, 4}, {16, 0, 0}));
  EXPECT_THAT(said(module, inputs({4, 4}, {12, 5, 3})), HasSubstr("the memory of buffer `x`"));
  EXPECT_THAT(said(module, inputs({4, 4}, {-1, 2, 3})), HasSubstr("the memory of buffer `x`"));
  EXPECT_THAT(said(module, inputs({4, 4}, {17, -1, 3})), HasSubstr("the memory of buffer `x`"));
  EXPECT_THAT(said(module, inputs({4, 4}, {12, 4, 4})),
              HasSubstr("index 4 of dimension 1 of buffer `x`"));
}

INSTANTIATE_TEST_SUITE_P(Targets, Accesses, testing::ValuesIn(kTargets),
                         [](const auto& info) { return name_of(info); });

}  // namespace
}  // namespace tenon::testing_targets
