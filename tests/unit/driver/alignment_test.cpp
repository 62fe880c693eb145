// SPDX-License-Identifier: Apache-2.0
// Memory whose address library functions ask to be a multiple of more than programs have anyway:
// scratch, intermediates, inputs, outputs and constants; run in every way.
#include "foreign_calls_test.h"
#include "tenon/backend/llvm/shared_library.h"
#include "tenon/driver/c_program.h"
#include "tenon/driver/load.h"

namespace tenon {
namespace {

// Its code names the parameter whose address is no multiple of `least`.
constexpr const char* kLibrary = R"(
#include <stdint.h>
int32_t add(const float* x, const float* w, float* y, float* scratch, int64_t n, int64_t least) {
  if ((uintptr_t)x % (uintptr_t)least != 0) return 1;
  if ((uintptr_t)w % (uintptr_t)least != 0) return 2;
  if ((uintptr_t)y % (uintptr_t)least != 0) return 3;
  if ((uintptr_t)scratch % (uintptr_t)least != 0) return 4;
  for (int64_t i = 0; i < n; ++i) scratch[i] = x[i] + *w;
  for (int64_t i = 0; i < n; ++i) y[i] = scratch[i];
  return 0;
}
)";

// The own operator between the two calls makes offsets that are no multiples by chance.
constexpr const char* kModule = R"(
@I.ir_module
class Module:
    @T.extern_func
    def add(x: T.Buffer((n,), "float32", align=LEAST), w: T.Buffer((), "float32", align=LEAST), y: T.Buffer((n,), "float32", align=LEAST), scratch: T.Buffer((n,), "float32", align=LEAST), n: T.int64, least: T.int64):
        T.func_attr({"effects": {"y": "out", "scratch": "scratch"}, "returns": "int32"})
        for i in range(n):
            y[i] = x[i] + w[()]

    @R.function
    def main(x: R.Tensor((EXTENT,), "float32")) -> R.Tensor((EXTENT,), "float32"):
SYMBOL
        with R.dataflow():
            a = R.call_dps_packed(Module.add, (x, R.const(1.5, "float32"), R.prim_value(LEAST)), out_sinfo=R.Tensor((VALUE,), "float32"))
            b = R.multiply(a, a)
            c = R.call_dps_packed(Module.add, (b, R.const(2.5, "float32"), R.prim_value(LEAST)), out_sinfo=R.Tensor((VALUE,), "float32"))
            d = R.add(a, c)
            e = R.call_dps_packed(Module.add, (d, R.const(1.5, "float32"), R.prim_value(LEAST)), out_sinfo=R.Tensor((VALUE,), "float32"))
            R.output(e)
        return e
)";

class AlignmentTest : public ForeignCallsTest,
                      public testing::WithParamInterface<std::pair<int64_t, bool>> {
 protected:
  AlignmentTest() : ForeignCallsTest(kLibrary) {}

  static std::string with(std::string text, const std::string& mark, const std::string& value) {
    for (size_t at = 0; (at = text.find(mark, at)) != std::string::npos; at += value.size())
      text.replace(at, mark.size(), value);
    return text;
  }
  static IRModule module() {
    const auto [least, is_symbolic] = GetParam();
    std::string text = with(kModule, "LEAST", std::to_string(least));
    text = with(text, "EXTENT", is_symbolic ? "\"n\"" : "5");
    text = with(text, "VALUE", is_symbolic ? "n" : "5");
    return parse(with(text, "SYMBOL\n", is_symbolic ? "        n = T.int64()\n" : ""));
  }
  // More than once, with inputs that begin anywhere.
  static void expect_right(Executable& program) {
    const std::vector<Ref<TensorData>> inputs = {tensor({1, 2, 3, 4, 5}, {5})};
    std::vector<float> right;
    for (const float x : {1.F, 2.F, 3.F, 4.F, 5.F}) {
      const float a = x + 1.5F, c = a * a + 2.5F;
      right.push_back(a + c + 1.5F);
    }
    for (int i = 0; i < 3; ++i) EXPECT_EQ(floats(*program.run(inputs).at(0)), right);
  }
};

TEST_P(AlignmentTest, InTheProcess) {
  const LoweredModule lowered = lower(module(), request());
  expect_right(*compiled(link(generate(lowered, request()), libraries_)));
}

TEST_P(AlignmentTest, OfALibrary) {
  const std::string path = folder_.file("program.so");
  llvm_backend::write_shared_library(generate(lower(module(), request()), request()), path,
                                     libraries_.get());
  const auto program = load_program(path);
  EXPECT_GE(program->declaration().alignment, GetParam().first);
  expect_right(*compiled(program));
}

TEST_P(AlignmentTest, InTheInterpreter) {
  expect_right(*interpreted(module(), libraries_));
  expect_right(*interpreted(lower(module(), request()).pipeline.module, libraries_));
}

TEST_P(AlignmentTest, InCWithPools) {
  for (const std::vector<std::string>& pools :
       {std::vector<std::string>{}, {"fast=100", "slow"}, {"fast=100", "slow", "flash=ro"}}) {
    COptions options;
    options.pools = pools;
    LoweredModule lowered = lower(with_pools(module(), options), request("c"));
    const c_backend::Program program = generate_c(lowered, request("c"), options);
    expect_right(*compiled(compile_c(program, request("c"), lowered, libraries_)));
    int64_t greatest = 0;
    for (const c_backend::PoolParameter& pool : program.pools)
      greatest = std::max(greatest, pool.alignment);
    EXPECT_EQ(greatest, GetParam().first);
  }
}

INSTANTIATE_TEST_SUITE_P(Bytes, AlignmentTest,
                         testing::Values(std::pair(128, false), std::pair(512, true),
                                         std::pair(4096, false), std::pair(4096, true),
                                         std::pair(65536, false)),
                         [](const auto& info) {
                           return std::to_string(info.param.first) +
                                  (info.param.second ? "symbolic" : "");
                         });

}  // namespace
}  // namespace tenon
