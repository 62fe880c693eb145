// SPDX-License-Identifier: Apache-2.0
// Patterns over TensorIR of a back end, from the ONNX file to what is reported of it.
#include <gtest/gtest.h>

#include "tenon/driver/compiler.h"
#include "tenon/driver/executable.h"
#include "tenon/driver/load.h"
#include "tenon/graph/patterns/fusion_pattern.h"
#include "tenon/script/parser.h"

namespace tenon {
namespace {

// A ReLU of a blocked activation: operators of ONNX have no such thing, kernels do.
constexpr const char* kBlockedRelu = R"(
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def relu(a: T.handle, b: T.handle):
        T.func_attr({"Pattern": "blocked.relu"})
        n, c, h, w, v = T.int64(), T.int64(), T.int64(), T.int64(), T.int64()
        A = T.match_buffer(a, (n, c, h, w, v), "float32")
        B = T.match_buffer(b, (n, c, h, w, v), "float32")
        for i, j, k, l, m in T.grid(n, c, h, w, v):
            with T.block("B"):
                vi, vj, vk, vl, vm = T.axis.remap("SSSSS", [i, j, k, l, m])
                B[vi, vj, vk, vl, vm] = T.max(A[vi, vj, vk, vl, vm], T.float32(0))
)";

class KernelPatterns : public testing::TestWithParam<graph::Backend::Unit> {
 protected:
  void SetUp() override {
    graph::Backend backend;
    backend.name = "blocked";
    backend.patterns = graph::read_patterns(script::parse_module(kBlockedRelu));
    backend.unit = GetParam();
    backend.lower = [this](IRModule module, const std::string& function,
                           const graph::BackendContext& context) {
      ++lowered_;
      return context.lower(std::move(module), function);
    };
    graph::register_backend(std::move(backend));
  }
  void TearDown() override { graph::unregister_backend("blocked"); }

  LoweredModule compile(const AttrValue::Map& place = {}, bool with_library = true) {
    IRModule module = load_module(TENON_SOURCE_DIR "/examples/digits/digits.onnx");
    if (with_library) module.attrs.set("libs", AttrList{std::string("blocked")});
    if (!place.empty()) module.attrs.set("place", place);
    request_.target = resolve("native");
    return lower(with_target(std::move(module), request_.target), request_);
  }
  std::vector<float> run(const LoweredModule& lowered) {
    std::vector<float> image;
    for (int i = 0; i < 3 * 64; ++i) image.push_back(static_cast<float>(i * 7 % 17) / 16);
    const auto out = compiled(link(generate(lowered, request_)))
                         ->run({TensorData::of(kFloat32, {3, 1, 8, 8}, image)});
    std::vector<float> values;
    for (int64_t i = 0; i < out[0]->elements(); ++i)
      values.push_back(static_cast<float>(out[0]->at_float(i)));
    return values;
  }

  CompileRequest request_;
  int lowered_ = 0;
};

TEST_P(KernelPatterns, TakeWhatFusedKernelsHold) {
  const LoweredModule with = compile(), without = compile({}, false);
  EXPECT_GT(lowered_, 0);
  ASSERT_EQ(with.offload.taken.size(), 1U);
  EXPECT_EQ(with.offload.taken[0].kernels, 3);
  EXPECT_EQ(str(with.offload), "blocked 3 of 15 operators, 0 % of the arithmetic; own code 12");
  EXPECT_GT(with.kernels, without.kernels);
  const std::vector<float> a = run(with), b = run(without);
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5) << i;
}

TEST_P(KernelPatterns, LeaveWhatIsKeptByHand) {
  std::string relu;
  const LoweredModule free = compile();
  for (const Remark& remark : free.pipeline.remarks)
    if (remark.pass == "AnnotatePlacement" && remark.subject.find("elu") != std::string::npos)
      relu = remark.subject;
  ASSERT_NE(relu, "");
  EXPECT_EQ(compile({{relu, "none"}}).offload.taken.at(0).kernels, 2);
}

INSTANTIATE_TEST_SUITE_P(Units, KernelPatterns,
                         testing::Values(graph::Backend::Unit::kComposite,
                                         graph::Backend::Unit::kRegion),
                         [](const auto& info) { return info.index == 0 ? "Composite" : "Region"; });

}  // namespace
}  // namespace tenon
