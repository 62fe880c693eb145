// SPDX-License-Identifier: Apache-2.0
// Scratch whose size a library says when it is asked: run in every way, with and without a bound.
#include "tenon/tir/scratch_query.h"

#include "foreign_calls_test.h"
#include "tenon/backend/llvm/shared_library.h"
#include "tenon/driver/c_program.h"
#include "tenon/driver/load.h"

namespace tenon {
namespace {

// It writes all of the scratch that it asks for, and wants to be told how much it got.
constexpr const char* kLibrary = R"(
#include <stddef.h>
#include <stdint.h>
#include <string.h>
size_t sum_scratch_bytes(int64_t n, int64_t passes) { return (size_t)(40 + 8 * n * passes); }
int32_t sum(const float* x, float* y, void* scratch, size_t bytes, int64_t n, int64_t passes) {
  if (bytes < sum_scratch_bytes(n, passes)) return 1;
  if ((uintptr_t)scratch % 256 != 0) return 2;
  memset(scratch, 0x5a, sum_scratch_bytes(n, passes));
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i];
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] + (float)sum;
  return 0;
}
)";

constexpr const char* kModule = R"py(
@I.ir_module
class Module:
    @T.extern_func
    def sum(x: T.Buffer((n,), "float32"), y: T.Buffer((n,), "float32"), scratch: T.Buffer((bytes,), "uint8", align=256), bytes: T.int64, n: T.int64, passes: T.int64):
        T.func_attr({"effects": {"y": "out", "scratch": "scratch"}, "returns": "int32", "c_types": {"scratch": "void*", "bytes": "size_t"}, "scratch_query": {"scratch": "sum_scratch_bytes(n, passes)"
}
})

    @R.function
    def main(x: R.Tensor((EXTENT,), "float32")) -> R.Tensor((EXTENT,), "float32"):
SYMBOL
        with R.dataflow():
            a = R.call_dps_packed(Module.sum, (x, R.prim_value(2)), out_sinfo=R.Tensor((VALUE,), "float32"))
            b = R.multiply(a, a)
            c = R.call_dps_packed(Module.sum, (b, R.prim_value(3)), out_sinfo=R.Tensor((VALUE,), "float32"))
            d = R.add(a, c)
            R.output(d)
        return d
)py";

std::string with(std::string text, const std::string& mark, const std::string& value) {
  for (size_t at = 0; (at = text.find(mark, at)) != std::string::npos; at += value.size())
    text.replace(at, mark.size(), value);
  return text;
}

class ScratchQueryTest : public ForeignCallsTest, public testing::WithParamInterface<bool> {
 protected:
  ScratchQueryTest() : ForeignCallsTest(kLibrary) {}

  static IRModule module(bool is_symbolic, const std::string& text = kModule) {
    std::string out = with(text, "EXTENT", is_symbolic ? "\"n\"" : "4");
    out = with(out, "VALUE", is_symbolic ? "n" : "4");
    return parse(with(out, "SYMBOL\n", is_symbolic ? "        n = T.int64()\n" : ""));
  }
  static void expect_right(Executable& program) {
    const std::vector<float> x = {1, 2, 3, 4}, a = {11, 12, 13, 14};
    std::vector<float> right;
    for (const float value : a) right.push_back(value + value * value + 121 + 144 + 169 + 196);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(floats(*program.run({tensor(x, {4})}).at(0)), right);
  }
};

INSTANTIATE_TEST_SUITE_P(Dims, ScratchQueryTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "symbolic" : "constant"; });

TEST_P(ScratchQueryTest, InTheProcess) {
  const LoweredModule lowered = lower(module(GetParam()), request());
  expect_right(*compiled(link(generate(lowered, request()), libraries_)));
}

TEST_P(ScratchQueryTest, OfALibrary) {
  const std::string path = folder_.file("program.so");
  llvm_backend::write_shared_library(generate(lower(module(GetParam()), request()), request()),
                                     path, libraries_.get());
  const auto program = load_program(path);
  EXPECT_EQ(program->declaration().workspace_bytes, -1);
  expect_right(*compiled(program));
}

TEST_P(ScratchQueryTest, InTheInterpreter) {
  expect_right(*interpreted(module(GetParam()), libraries_));
  expect_right(*interpreted(lower(module(GetParam()), request()).pipeline.module, libraries_));
}

TEST_P(ScratchQueryTest, InC) {
  for (const std::vector<std::string>& pools : {std::vector<std::string>{}, {"fast=100", "slow"}}) {
    COptions options;
    options.pools = pools;
    LoweredModule lowered = lower(with_pools(module(GetParam()), options), request("c"));
    const c_backend::Program program = generate_c(lowered, request("c"), options);
    EXPECT_NE(program.header.find("size_t sum_scratch_bytes(int64_t, int64_t);"), std::string::npos)
        << program.header;
    expect_right(*compiled(compile_c(program, request("c"), lowered, libraries_)));
  }
}

// A bound of its own is planned, and what the library asks for is compared with it.
TEST_F(ScratchQueryTest, ABoundIsPlannedAndChecked) {
  const auto bounded = [&](const std::string& bytes) {
    std::string text = with(kModule, "(bytes,)", "(\"" + bytes + "\",)");
    text = with(text, "bytes: T.int64, ", "");
    text = with(text, ", \"bytes\": \"size_t\"", "");
    return module(false, text);
  };
  const backend::TemporaryFolder folder;
  write_file(folder.file("library.c"),
             with(with(kLibrary, "size_t bytes, ", ""),
                  "if (bytes < sum_scratch_bytes(n, passes)) return 1;", ""));
  const auto libraries = std::make_shared<const backend::Libraries>(
      std::vector<std::string>{folder.file("library.c")}, nullptr, backend::Trust::kAnything);
  const auto run = [&](const std::string& bytes, const std::string& target) {
    LoweredModule lowered = lower(bounded(bytes), request(target));
    EXPECT_TRUE(lowered.memory.bytes.has_value());
    if (target == "c") {
      const c_backend::Program program = generate_c(lowered, request("c"), {});
      EXPECT_NE(program.header.find("_WORKSPACE_SIZE "), std::string::npos);
      expect_right(*compiled(compile_c(program, request("c"), lowered, libraries)));
    } else {
      expect_right(*compiled(link(generate(lowered, request()), libraries)));
    }
  };
  for (const std::string target : {"native", "c"}) {
    run("n * 40", target);  // 160 bytes, of which 104 and 136 are asked for
    const std::string error = error_of([&] { run("n * 30", target); });
    EXPECT_NE(
        error.find("library function `sum` asks for 136 bytes of scratch; `scratch`, argument "
                   "3, has 120"),
        std::string::npos)
        << error;
  }
  expect_right(*interpreted(bounded("n * 40"), libraries));
  const std::string error = error_of(
      [&] { interpreted(bounded("n * 30"), libraries)->run({tensor({1, 2, 3, 4}, {4})}); });
  EXPECT_NE(error.find("asks for 136 bytes of scratch"), std::string::npos) << error;
}

TEST_F(ScratchQueryTest, RefusesWhatItCannotAsk) {
  const auto refuse = [&](const std::string& query) {
    return error_of(
        [&] { module(false, with(kModule, "\"sum_scratch_bytes(n, passes)\"", query)); });
  };
  EXPECT_NE(refuse("\"sum_scratch_bytes(n, pases)\"").find("did you mean `passes`?"),
            std::string::npos)
      << refuse("\"sum_scratch_bytes(n, pases)\"");
  EXPECT_NE(refuse("\"sum_scratch_bytes\"").find("is no call"), std::string::npos);
  EXPECT_NE(refuse("\"sum scratch(n)\"").find("is no call"), std::string::npos);
  EXPECT_NE(refuse("\"f(bytes)\"").find("`bytes` is neither"), std::string::npos)
      << refuse("\"f(bytes)\"");
  EXPECT_NE(refuse("8").find("expected a string"), std::string::npos);
  const auto names = [&](const std::string& parameter) {
    return error_of([&] {
      module(false, with(kModule, "\"scratch_query\": {\"scratch\"",
                         "\"scratch_query\": {\"" + parameter + "\""));
    });
  };
  EXPECT_NE(names("scrach").find("which is no scratch parameter; did you mean `scratch`?"),
            std::string::npos)
      << names("scrach");
  EXPECT_NE(names("y").find("which is no scratch parameter"), std::string::npos);
}

}  // namespace
}  // namespace tenon
