// SPDX-License-Identifier: Apache-2.0
// Constants that patterns match, as arguments of the composites: files of combinators.
#include <gtest/gtest.h>

#include "tenon/graph/partition_passes.h"
#include "tenon/script/parser.h"
#include "tenon/script/pattern_file.h"

namespace tenon::graph {
namespace {

constexpr const char* kNetwork = R"(
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((1, 4), "float32"), r: R.Tensor((1, 2), "float32")):
        with R.dataflow():
            m = R.matmul(x, R.const([[1, 2], [3, 4], [5, 6], [7, 8]], "float32"))
            s = R.add(m, r)
            h = R.multiply(s, R.const(0.5, "float32"))
            y = R.add(h, R.const([9, 8], "float32"))
            R.output(y)
        return y
)";

constexpr const char* kPattern = R"(
w, b = is_const(), is_const()
m = is_op("matmul")(wildcard(), w)
h = is_op("multiply")(is_op("add")(m, wildcard()), is_expr(R.const(0.5, "float32")))
y = is_op("add")(h, b)
)";

// The names of the composite's parameters, in order.
std::string parameters(const std::string& file, const FuseOptions& options = {}) {
  const auto read = script::read_pattern_file(file, {.backend = "t"});
  const IRModule module =
      fuse_ops_by_pattern(script::parse_module(kNetwork), read.patterns, options);
  for (const auto& [name, base] : module.functions()) {
    const auto function = cast<Function>(base);
    if (!function || !function->attrs.contains("Composite")) continue;
    std::string text;
    for (const Ref<Var>& param : function->params) text += (text.empty() ? "" : " ") + param->name;
    return text;
  }
  return "nothing matches";
}

TEST(BindConstants, StandInTheCompositeByDefault) { EXPECT_EQ(parameters(kPattern), "x r"); }

TEST(BindConstants, OfAFile) {
  // In the order of the pattern; what it names by its value stays inside.
  EXPECT_EQ(parameters(std::string(kPattern) + "bind_constants = False\n"), "x w r b");
}

TEST(BindConstants, OfOnePattern) {
  EXPECT_EQ(
      parameters(std::string(kPattern) +
                 "patterns = [('y', y, {'weight': w, 'bias': b}, {'bind_constants': False})]"),
      "x weight r bias");
  EXPECT_EQ(parameters(std::string(kPattern) +
                       "patterns = [FusionPattern('y', y, {'weight': w}, bind_constants=False)]"),
            "x weight r b");
}

TEST(BindConstants, WithoutAName) {
  EXPECT_EQ(parameters("y = is_op('add')(wildcard(), is_const())\nbind_constants = False\n"),
            "h constant");
}

TEST(BindConstants, APatternSaysMoreThanThePass) {
  FuseOptions lifted;
  lifted.bind_constants = false;
  EXPECT_EQ(parameters(kPattern, lifted), "x w r b");
  EXPECT_EQ(parameters(std::string(kPattern) + "bind_constants = True\n", lifted), "x r");
}

TEST(BindConstants, OptionsThatAreNone) {
  const auto fails = [](const std::string& text) -> std::string {
    try {
      script::read_pattern_file(std::string(kPattern) + text, {.backend = "t"});
    } catch (const CompileError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(fails("patterns = [('y', y, {}, {'bind_constant': False})]").find("`bind_constants`"),
            std::string::npos);
  EXPECT_NE(fails("bind_constants = 3\n").find("is no flag"), std::string::npos);
}

}  // namespace
}  // namespace tenon::graph
