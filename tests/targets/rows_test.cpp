// SPDX-License-Identifier: Apache-2.0
// Kernels that become one row by row (FuseRows) compute what they compute as two, bit by bit.
#include <gtest/gtest.h>

#include <regex>

#include "run.h"
#include "tenon/driver/compare.h"
#include "tenon/driver/compiler.h"
#include "tenon/driver/executable.h"
#include "tenon/driver/passes.h"
#include "tenon/driver/pipelines.h"
#include "tenon/script/parser.h"

namespace tenon::testing_targets {
namespace {

class Rows : public testing::TestWithParam<TestTarget> {};

// Layers one after another, with weights that fold.
class Chain {
 public:
  explicit Chain(std::vector<int64_t> shape) : shape_(std::move(shape)) {}

  Chain& conv(int64_t filters, int64_t rows, int64_t columns, const std::string& options = "") {
    const int64_t groups = options.find("groups") == std::string::npos ? 1 : channels_();
    const int64_t inputs = channels_() / groups;
    const std::string count = std::to_string(filters * inputs * rows * columns);
    line("R.sin(R.arange(0, " + count + ", 1, dtype=\"float32\"))");
    line(fmt::format("R.reshape({}, ({}, {}, {}, {}))", last(), filters, inputs, rows, columns));
    const std::string weights = last();
    line(fmt::format("R.nn.conv2d({}, {}{}{})", value_, weights, options.empty() ? "" : ", ",
                     options));
    value_ = last();
    filters_ = filters;
    return *this;
  }
  /// One filter, or `multiplier` of them, for each channel.
  Chain& depthwise(int64_t rows, int64_t columns, const std::string& options = "",
                   int64_t multiplier = 1) {
    const std::string groups = fmt::format("groups={}", channels_());
    return conv(channels_() * multiplier, rows, columns,
                groups + (options.empty() ? "" : ", ") + options);
  }
  Chain& apply(const std::string& before, const std::string& after = ")") {
    line(before + value_ + after);
    value_ = last();
    return *this;
  }
  Chain& add(const std::string& other) { return apply("R.add(" + other + ", "); }

  /// Lines of a script that compute `value` of `x`.
  const std::vector<std::string>& lines() const { return lines_; }
  const std::string& value() const { return value_; }
  const std::vector<int64_t>& shape() const { return shape_; }

 private:
  int64_t channels_() const { return filters_ ? filters_ : shape_[1]; }
  std::string last() const { return fmt::format("v{}", lines_.size() - 1); }
  void line(const std::string& value) {
    lines_.push_back(fmt::format("v{} = {}", lines_.size(), value));
  }

  std::vector<int64_t> shape_;
  std::string value_ = "x";
  std::vector<std::string> lines_;
  int64_t filters_ = 0;
};

struct Case {
  const char* name;
  Chain chain;
  bool is_by_rows = true;
};

std::vector<Case> cases() {
  const std::string same = "padding=(1, 1)", half = "padding=(1, 1), strides=(2, 2)";
  return {
      {"inverted residual", Chain({1, 8, 13, 11})
                                .conv(24, 1, 1)
                                .apply("R.minimum(R.const(6.0, \"float32\"), R.nn.relu(", "))")
                                .depthwise(3, 3, same)
                                .apply("R.minimum(R.const(6.0, \"float32\"), R.nn.relu(", "))")
                                .conv(8, 1, 1)
                                .add("x")},
      {"stride 2", Chain({1, 8, 14, 9}).conv(32, 1, 1).depthwise(3, 3, half).apply("R.nn.relu(")},
      {"stride 2 of odd rows",
       Chain({1, 8, 15, 9}).conv(20, 1, 1).depthwise(3, 3, half).apply("R.nn.silu(")},
      {"stride 3", Chain({1, 5, 17, 16}).conv(16, 1, 1).depthwise(3, 3, "strides=(3, 3)")},
      {"5 x 5", Chain({1, 8, 12, 12}).conv(16, 1, 1).depthwise(5, 5, "padding=(2, 2)")},
      {"5 x 5 of stride 2",
       Chain({1, 8, 12, 12}).conv(16, 1, 1).depthwise(5, 5, "padding=(2, 2), strides=(2, 2)")},
      {"7 x 7 with uneven padding",
       Chain({1, 4, 11, 10}).conv(48, 1, 1).depthwise(7, 7, "padding=(1, 0, 4, 3)")},
      {"padding behind only", Chain({1, 4, 12, 12})
                                  .conv(16, 1, 1)
                                  .depthwise(3, 3, "padding=(0, 0, 1, 1), strides=(2, 2)")},
      {"rows of padding alone",
       Chain({1, 4, 3, 6}).conv(16, 1, 1).depthwise(3, 1, "padding=(5, 0)")},
      {"columns between rows of padding",
       Chain({1, 4, 6, 12}).conv(16, 1, 1).depthwise(1, 3, "padding=(2, 1)"), false},
      {"dilation",
       Chain({1, 8, 14, 13}).conv(16, 1, 1).depthwise(3, 3, "padding=(2, 2), dilation=(2, 2)")},
      {"several filters a channel", Chain({1, 8, 9, 9}).conv(16, 1, 1).depthwise(3, 3, same, 2)},
      {"several pictures", Chain({3, 8, 10, 9}).conv(40, 1, 1).depthwise(3, 3, same)},
      {"planes in front",
       Chain({1, 3, 23, 21}).conv(32, 3, 3, half).apply("R.nn.relu(").depthwise(3, 3, same)},
      {"depthwise twice", Chain({1, 16, 12, 9}).depthwise(3, 3, same).depthwise(3, 3, same)},
      {"maximum of what is padded", Chain({1, 3, 21, 22})
                                        .conv(32, 7, 7, "padding=(3, 3), strides=(2, 2)")
                                        .apply("R.nn.relu(")
                                        .apply("R.nn.max_pool2d(",
                                               ", pool_size=(3, 3), "
                                               "strides=(2, 2), padding=(1, 1))")},
      {"mean", Chain({1, 4, 12, 12})
                   .conv(24, 1, 1)
                   .apply("R.nn.avg_pool2d(", ", pool_size=(2, 2), strides=(2, 2))")},
  };
}

struct Network {
  IRModule module;
  Tensors inputs;
};

// All chains beside each other, each with an input and an output of its own.
Network network(const std::vector<Case>& chains) {
  Network out;
  std::string params, body, results;
  for (size_t i = 0; i < chains.size(); ++i) {
    const Chain& chain = chains[i].chain;
    const auto named = [&](std::string text) {  // `x` and `v3` of chain 2 are `c2_x` and `c2_v3`
      return std::regex_replace(text, std::regex("\\b(x|v[0-9]+)\\b"), fmt::format("c{}_$1", i));
    };
    params += fmt::format("{}c{}_x: R.Tensor(({}), \"float32\")", i ? ", " : "", i,
                          fmt::join(chain.shape(), ", "));
    for (const std::string& line : chain.lines()) body += "            " + named(line) + "\n";
    results += (i ? ", " : "") + named(chain.value());
    out.inputs.push_back(random_elements(kFloat32, chain.shape(), static_cast<unsigned>(i)));
  }
  out.module =
      script::parse_module("@I.ir_module\nclass Module:\n    @R.function\n    def main(" + params +
                           "):\n        with R.dataflow():\n" + body + "            R.output(" +
                           results + ")\n        return (" + results + ",)\n");
  return out;
}

// The standard pipeline with rows wherever they can be, or nowhere.
Pipeline pipeline(bool has_rows) {
  Pipeline out;
  for (Pass pass : standard_pipeline()) {
    if (pass.name != "FuseRows") {
      out.push_back(std::move(pass));
    } else if (has_rows) {
      pass.options.set("all", true);
      out.push_back(std::move(pass));
    }
  }
  return out;
}

TEST_P(Rows, ComputeTheSameBits) {
  const Target target = resolve(std::string(GetParam().description));
  const std::vector<Case> chains = cases();
  const auto [module, inputs] = network(chains);
  const Tensors expected = run_for(module, target, inputs, 1, {}, pipeline(false));
  const Tensors defined = interpreted(module)->run(inputs);
  for (const int threads : {1, 2, 3}) {
    if (threads < 3 && GetParam().name != "native") continue;
    const Tensors got = run_for(module, target, inputs, threads, {}, pipeline(true));
    for (size_t i = 0; i < chains.size(); ++i) {
      const auto other = exact_difference(*got.at(i), *expected.at(i));
      EXPECT_FALSE(other) << chains[i].name << ", " << threads << " threads: " << *other;
      const auto wrong = difference(*got.at(i), *defined.at(i), Tolerance{0, 0, 1e-5});
      EXPECT_FALSE(wrong) << chains[i].name << ": " << *wrong;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Everywhere, Rows, testing::ValuesIn(kTargets),
                         [](const auto& info) { return name_of(info); });

// What the chains are about happens in each of them, or is refused.
TEST(RowFusion, TakesEveryChain) {
  for (const Case& each : cases()) {
    CompileRequest request;
    request.target = resolve("llvm -mcpu=haswell");
    request.whole = pipeline(true);
    request.pipeline.check_text = true;
    const LoweredModule lowered = lower(network({each}).module, request);
    bool is_fused = false;
    for (const Remark& remark : lowered.pipeline.remarks)
      is_fused = is_fused || (remark.pass == "FuseRows" && remark.verdict == "fused");
    EXPECT_EQ(is_fused, each.is_by_rows) << each.name;
  }
}

}  // namespace
}  // namespace tenon::testing_targets
