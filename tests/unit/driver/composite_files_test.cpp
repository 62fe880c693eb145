// SPDX-License-Identifier: Apache-2.0
// --composite: patterns of every form, in files.
#include "foreign_calls_test.h"
#include "product_pattern.h"

namespace tenon {
namespace {

constexpr const char* kLibrary = R"(
#include <stdint.h>
void product(const float* a, const float* b, float* c) {
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) {
      c[i * 4 + j] = 0;
      for (int k = 0; k < 4; ++k) c[i * 4 + j] += a[i * 4 + k] * b[k * 4 + j];
    }
}
void exp_relu(const float* x, float* y) {
  for (int i = 0; i < 16; ++i) y[i] = 7;
}
)";

constexpr const char* kModel = R"(
@R.function
def main(x: R.Tensor((4, 4), "float32"), w: R.Tensor((4, 4), "float32")) -> R.Tensor((4, 4), "float32"):
    with R.dataflow():
        p = R.matmul(x, w)
        e = R.exp(p)
        r = R.nn.relu(e)
        R.output(r)
    return r
)";

constexpr const char* kCombinators = R"(
exp_relu = is_op("relax.nn.relu")(is_op("relax.exp")(wildcard()))
)";

class CompositeFiles : public ForeignCallsTest {
 protected:
  CompositeFiles() : ForeignCallsTest(kLibrary) {}

  LoweredModule compile(const std::string& patterns, std::vector<std::string> libraries = {"toy"}) {
    ModelOptions options;
    options.composite = {folder_.file("patterns.py")};
    options.call_by_name = std::move(libraries);
    write_file(options.composite[0], patterns);
    IRModule module = options.prepare(script::parse_module(kModel));
    CompileRequest wanted = request();
    wanted.first = options.passes();
    return lower(with_target(std::move(module), wanted.target), wanted);
  }
  std::vector<float> run(const LoweredModule& lowered) {
    std::vector<float> x, w;
    for (int i = 0; i < 16; ++i) {
      x.push_back(static_cast<float>(i % 5) / 8);
      w.push_back(static_cast<float>(i % 3) / 4);
    }
    return floats(*compiled(link(generate(lowered, request()), libraries_))
                       ->run({tensor(x, {4, 4}), tensor(w, {4, 4})})
                       .at(0));
  }
};

TEST_F(CompositeFiles, HaveCombinators) {
  const LoweredModule lowered = compile(kCombinators);
  EXPECT_EQ(lowered.library_calls, 1);
  EXPECT_EQ(run(lowered), std::vector<float>(16, 7));
}

TEST_F(CompositeFiles, HaveKernels) {
  const LoweredModule lowered = compile(kProduct);
  EXPECT_EQ(lowered.library_calls, 1);
  const std::vector<float> own = run(compile("nothing = is_op(\"relax.sin\")(wildcard())\n"));
  const std::vector<float> taken = run(lowered);
  ASSERT_EQ(own.size(), taken.size());
  for (size_t i = 0; i < own.size(); ++i) EXPECT_NEAR(own[i], taken[i], 1e-5F * own[i]) << i;
}

TEST_F(CompositeFiles, HaveBoth) {
  const LoweredModule lowered = compile(std::string(kCombinators) + kProduct);
  EXPECT_EQ(lowered.library_calls, 2);
  EXPECT_EQ(run(lowered), std::vector<float>(16, 7));
}

TEST_F(CompositeFiles, NameABackEnd) {
  for (const char* text : {kCombinators, kProduct}) {
    const std::string error = error_of([&] { compile(text, {}); });
    EXPECT_NE(error.find("belongs to no back end"), std::string::npos) << error;
  }
  const std::string named = "patterns = [(\"toy.exp_relu\", is_op(\"relax.exp\")(wildcard()))]\n";
  EXPECT_EQ(compile("a = wildcard()\n" + named, {}).library_calls, 0);
}

TEST_F(CompositeFiles, FaultsOfCombinatorsHaveTheirPlace) {
  const std::string error =
      error_of([&] { compile("a = is_op(\"relax.nothing\")(wildcard())\n"); });
  EXPECT_NE(error.find("patterns.py:1:"), std::string::npos) << error;
}

}  // namespace
}  // namespace tenon
