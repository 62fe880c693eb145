// SPDX-License-Identifier: Apache-2.0
// The assembly of kernels as the default schedule makes them: what is in registers stays there.
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <sstream>

#include "../tir/schedule_kernels.h"
#include "tenon/backend/llvm/compile.h"
#include "tenon/driver/passes.h"
#include "tenon/driver/pipelines.h"
#include "tenon/script/parser.h"
#include "tenon/tir/schedule/layout_choice.h"

namespace tenon {
namespace {

using namespace tir;

struct Loop {
  std::vector<std::string> lines;
  bool has_frame = false;  // %rbp is the frame's base in this function, not a pointer as others
};

/// The innermost loops of an assembly text: from a label to the last jump back to it.
std::vector<Loop> innermost_loops(const std::string& assembly) {
  static const std::regex kFunction(R"(^[A-Za-z_]\S*:)"), kLabel(R"(^(\.L\w+):)"),
      kJump(R"(^\s+j\w+\s+(\.L\w+))");
  std::vector<std::string> lines;
  std::vector<bool> has_frame;  // of the function that a line is in
  std::map<std::string, size_t> labels;
  std::map<size_t, size_t> loops;  // first line to last
  std::istringstream in(assembly);
  for (std::string line; std::getline(in, line); lines.push_back(line)) {
    std::smatch match;
    const bool begins = std::regex_search(line, match, kFunction);
    has_frame.push_back(!begins && !has_frame.empty() &&
                        (has_frame.back() || line == "\tmovq\t%rsp, %rbp"));
    if (std::regex_search(line, match, kLabel)) labels[match[1]] = lines.size();
    if (!std::regex_search(line, match, kJump)) continue;
    if (const auto label = labels.find(match[1]); label != labels.end())
      loops[label->second] = lines.size();
  }
  std::vector<Loop> out;
  for (const auto& [first, last] : loops) {
    const auto inside = [first = first, last = last](const auto& other) {
      return other.first > first && other.second <= last;
    };
    if (std::any_of(loops.begin(), loops.end(), inside)) continue;
    out.push_back({{lines.begin() + static_cast<std::ptrdiff_t>(first),
                    lines.begin() + static_cast<std::ptrdiff_t>(last) + 1},
                   has_frame[first]});
  }
  return out;
}

/// Lines of innermost loops that move a vector register to or from a fixed place on the stack.
/// Arrays on the stack are indexed by a loop; what has spilled is not.
std::vector<std::string> spills(const std::string& assembly) {
  static const std::regex kStack(R"(\s-?\d*\(%rsp\))"), kFrame(R"(\s-?\d*\(%rbp\))"),
      kVector(R"(%[xyz]mm\d+)");
  std::vector<std::string> out;
  for (const Loop& loop : innermost_loops(assembly))
    for (const std::string& line : loop.lines)
      if (std::regex_search(line, kVector) &&
          (std::regex_search(line, kStack) || (loop.has_frame && std::regex_search(line, kFrame))))
        out.push_back(line);
  return out;
}

size_t multiply_adds(const std::string& assembly) {
  size_t most = 0;
  for (const Loop& loop : innermost_loops(assembly))
    most = std::max(most, static_cast<size_t>(std::count_if(
                              loop.lines.begin(), loop.lines.end(), [](const std::string& line) {
                                return line.find("vfmadd") != std::string::npos &&
                                       line.find("ps\t") != std::string::npos;
                              })));
  return most;
}

std::string assembly_of(const Ref<PrimFunc>& kernel, const Target& target) {
  IRModule module;
  module.attrs.set("target", target.str());
  module.set("kernel", kernel);
  const Ref<PrimFunc> renewed = renew_definitions(kernel);
  std::vector<NodePtr> args;
  for (const Ref<Buffer>& buffer : renewed->buffers) args.push_back(BufferRegion::whole(buffer));
  module.set("main",
             PrimFunc::of_buffers(
                 renewed->buffers, make<CallTir>(make<GlobalVar>("kernel"), args),
                 Attrs{{"tenon.entry", true},
                       {"tenon.num_inputs", static_cast<int64_t>(renewed->buffers.size()) - 1}}));
  for (const Stage& stage : stages())
    if (stage.name == "schedule" || stage.name == "lower")
      for (const PipelineStep& step : stage.steps)
        module = find_pass(step.pass)->run(std::move(module), {});
  return llvm_backend::emit_assembly(module, target);
}

class Spills : public ::testing::TestWithParam<const char*> {
 protected:
  void check(const std::string& name, const Ref<PrimFunc>& kernel, size_t least_multiply_adds) {
    const std::string assembly = assembly_of(kernel, target_);
    EXPECT_GE(multiply_adds(assembly), least_multiply_adds) << name;
    std::string text;
    for (const std::string& line : spills(assembly)) text += line + "\n";
    EXPECT_EQ(text, "") << name;
  }

  Ref<PrimFunc> conv_kernel(testing::Conv& c) {
    ConvShape shape;
    shape.in_channels = c.ic;
    shape.out_channels = c.oc;
    shape.kernel_height = shape.kernel_width = c.kernel;
    shape.stride_height = shape.stride_width = c.stride;
    shape.out_height = (c.h + 2 * c.pad - c.kernel) / c.stride + 1;
    shape.out_width = (c.w + 2 * c.pad - c.kernel) / c.stride + 1;
    const ConvLayout layout = choose_conv_layout(shape, target_);
    c.v = layout.block;
    c.group = layout.weight_group;
    return c.ic <= 4 ? testing::planar_conv(c) : testing::conv(c);
  }

  void conv(testing::Conv c) {
    const Ref<PrimFunc> kernel = conv_kernel(c);
    const std::string name = fmt::format("{}x{}, {} to {} channels, {}x{}, stride {}", c.kernel,
                                         c.kernel, c.ic, c.oc, c.h, c.w, c.stride);
    check(name, kernel, c.ic <= 4 ? 12 : 32);
  }

  Target target_ = parse_target(GetParam());
};

TEST_P(Spills, Convolutions) {
  conv({.ic = 64, .oc = 64, .h = 56, .w = 56, .kernel = 3, .pad = 1});
  conv({.ic = 128, .oc = 128, .h = 28, .w = 28, .kernel = 3, .pad = 1, .residual = true});
  conv({.ic = 512, .oc = 512, .h = 7, .w = 7, .kernel = 3, .pad = 1});
  conv({.ic = 128, .oc = 128, .h = 56, .w = 56, .kernel = 3, .stride = 2, .pad = 1});
}

TEST_P(Spills, PointwiseConvolutions) {
  conv({.ic = 64, .oc = 256, .h = 56, .w = 56, .residual = true});
  conv({.ic = 512, .oc = 128, .h = 28, .w = 28});
  conv({.ic = 256, .oc = 1024, .h = 14, .w = 14});
  conv({.ic = 2048, .oc = 512, .h = 7, .w = 7});
  conv({.ic = 256, .oc = 512, .h = 56, .w = 56, .stride = 2});
}

TEST_P(Spills, FirstConvolutions) {
  conv({.ic = 3, .oc = 64, .h = 224, .w = 224, .kernel = 7, .stride = 2, .pad = 3});
  conv({.ic = 3, .oc = 32, .h = 224, .w = 224, .kernel = 3, .stride = 2, .pad = 1});
  conv({.ic = 3, .oc = 16, .h = 224, .w = 224, .kernel = 3, .stride = 2, .pad = 1});
  conv({.ic = 3, .oc = 16, .h = 32, .w = 32, .kernel = 3, .pad = 1});
}

TEST_P(Spills, DepthwiseConvolutions) {
  const int64_t v = target_.vector_lanes();
  for (const int64_t stride : {1, 2})
    check("3x3",
          testing::depthwise({.ic = 96,
                              .oc = 96,
                              .h = 56,
                              .w = 56,
                              .kernel = 3,
                              .stride = stride,
                              .pad = 1,
                              .v = v}),
          3);
  check("5x5",
        testing::depthwise({.ic = 96, .oc = 96, .h = 14, .w = 14, .kernel = 5, .pad = 2, .v = v}),
        3);
}

TEST_P(Spills, Products) {
  const auto dense = [&](const Expr& m, int64_t n, int64_t k) {
    const int64_t rows = as_int(m).value_or(0);
    check(fmt::format("{}x{}x{}", rows, n, k),
          testing::dense(m, n, k, choose_panel_width(rows, n, k, target_)), rows == 1 ? 4 : 32);
  };
  dense(int64(128), 768, 768);
  dense(int64(197), 192, 768);
  dense(int64(64), 500, 800);
  dense(int64(1), 1000, 2048);
  dense(Var::size("m"), 768, 768);
  check("scores", testing::batched(12, int64(128), int64(128), int64(64), true), 32);
  check("values", testing::batched(12, int64(128), int64(64), int64(128), false), 32);
  check("odd scores", testing::batched(12, int64(197), int64(197), int64(64), true), 32);
}

// A tile that has more values than registers (all of a 3x3 window in one iteration): what goes to
// the stack does not straddle cache lines.
TEST_P(Spills, AreAligned) {
  testing::Conv c{.ic = 3, .oc = 48, .h = 225, .w = 225, .kernel = 3, .stride = 2, .pad = 1};
  const std::string assembly = assembly_of(conv_kernel(c), target_);
  static const std::regex kSpill(
      R"(\s(-?\d*)\(%rsp\).*%([yz])mm\d+|%([yz])mm\d+, (-?\d*)\(%rsp\))");
  size_t found = 0;
  std::istringstream lines(assembly);
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (!std::regex_search(line, match, kSpill)) continue;
    ++found;
    const std::string offset = match[1].str() + match[4].str();
    const int bytes = match[2].str() + match[3].str() == "z" ? 64 : 32;
    EXPECT_EQ(offset.empty() ? 0 : std::stoi(offset) % bytes, 0) << line;
  }
  EXPECT_GT(found, 0U);
  EXPECT_NE(assembly.find(fmt::format("andq\t$-{}, %rsp", target_.vector_bits / 8)),
            std::string::npos);
}

// A square is transposed in as many steps as halvings make one lane of a vector, each of one shuffle
// for every row.
TEST_P(Spills, SquaresAreTransposedByShuffles) {
  const IRModule module = script::parse_module(R"(
@I.ir_module
class Module:
    @T.prim_func
    def main(x: T.Buffer((T.int64(96), T.int64(96)), "float32"), y: T.Buffer((T.int64(96), T.int64(96)), "float32")):
        for i, j in T.grid(T.int64(96), T.int64(96)):
            with T.block("y"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = x[vj, vi]
)");
  const std::string assembly = assembly_of(module.find<PrimFunc>("main"), target_);
  static const std::regex kShuffle(R"(\sv(perm|insert|extract|unpck|punpck|shuf|blend|broadcast))");
  size_t most = 0;
  for (const Loop& loop : innermost_loops(assembly))
    most = std::max(most, static_cast<size_t>(std::count_if(
                              loop.lines.begin(), loop.lines.end(), [](const std::string& line) {
                                return std::regex_search(line, kShuffle);
                              })));
  EXPECT_EQ(most, target_.vector_lanes() == 8 ? 8U * 3 : 16U * 4) << assembly;
}

// One row: panels of a matrix that is read once are about as wide as one another.
TEST_P(Spills, PanelsOfOneRow) {
  const int64_t lanes = target_.vector_lanes(), widest = target_.vector_registers >= 32 ? 8 : 6;
  for (int64_t vectors = 1; vectors <= 64; ++vectors) {
    const int64_t width = choose_panel_width(1, vectors * lanes - 3, 640, target_) / lanes;
    ASSERT_LE(width, widest);
    const int64_t panels = (vectors + width - 1) / width;
    EXPECT_EQ(panels, (vectors + widest - 1) / widest) << vectors;
    EXPECT_LT(panels * width - vectors, panels) << vectors;
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Spills,
                         ::testing::Values("llvm -mcpu=haswell", "llvm -mcpu=skylake-avx512"),
                         [](const auto& info) { return info.index == 0 ? "haswell" : "skylake"; });

}  // namespace
}  // namespace tenon
