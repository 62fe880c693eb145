// SPDX-License-Identifier: Apache-2.0
// Golden tests of patterns: each file of tests/patterns/ has patterns in Python's syntax, graph
// functions under `# SEARCHED`, and under `# EXPECT` what matches where. TENON_UPDATE_GOLDEN=1
// rewrites what follows EXPECT.
#include "tenon/script/pattern_file.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tenon/script/printer.h"

namespace tenon::script {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string part(const std::string& text, const std::string& begin, const std::string& end) {
  const size_t from = begin.empty() ? 0 : text.find(begin);
  if (from == std::string::npos) return "";
  const size_t start = begin.empty() ? 0 : from + begin.size();
  const size_t to = end.empty() ? std::string::npos : text.find(end, start);
  return text.substr(start, to == std::string::npos ? to : to - start);
}

std::string name(const graph::Value& value) {
  const auto* var = value.as<graph::Var>();
  return var ? var->name : print(value);
}

// `p: lv1 {x: a, w: b}`: the root, and what the other named patterns matched.
std::string matches(const PatternFile& file, const IRModule& module) {
  std::string out;
  for (const auto& [function_name, base] : module.functions()) {
    const auto function = cast<graph::Function>(base);
    if (!function) continue;
    const graph::Matcher matcher(&module, *function);
    for (const auto& [pattern_name, pattern] : file.named) {
      if (graph::pattern_size(pattern) == 0) continue;
      out += "# " + function_name + " " + pattern_name + ":";
      bool found = false;
      for (const Ref<graph::Binding>& root : matcher.roots(pattern)) {
        const auto match = matcher.match(pattern, root);
        if (!match) continue;
        out += (found ? "; " : " ") + root->var->name;
        found = true;
        std::string parts;
        for (const auto& [part_name, part] : file.named)
          if (const graph::Value value = (*match)[part]; value && !part.same_as(pattern))
            parts += (parts.empty() ? "" : ", ") + part_name + "=" + name(value);
        if (!parts.empty()) out += "(" + parts + ")";
      }
      out += found ? "\n" : " nothing\n";
    }
    for (const auto& [context_name, context] : file.contexts) {
      int number = 0;
      for (const Ref<graph::BindingBlock>& block : function->body->blocks) {
        if (!block->is_dataflow) continue;
        const auto match = matcher.match_dfb(context, *block);
        out += fmt::format("# {} {} in block {}:", function_name, context_name, number++);
        if (!match) out += " nothing";
        for (const auto& [part_name, part] : file.named)
          if (match && (*match)[part]) out += " " + part_name + "=" + name((*match)[part]);
        out += "\n";
      }
    }
  }
  return out;
}

// What is printed of a pattern reads back as the same.
void expect_round_trip(const graph::DFPattern& pattern) {
  const std::string text = print_pattern(pattern, "again");
  if (text.find("...") != std::string::npos) return;  // a PrimFunc has no text in an expression
  try {
    const PatternFile file = read_pattern_file(text);
    ASSERT_FALSE(file.named.empty()) << text;
    EXPECT_EQ(file.named.back().first, "again") << text;
    EXPECT_TRUE(structural_equal(file.named.back().second, pattern, {.map_free = true})) << text;
    EXPECT_EQ(print_pattern(file.named.back().second, "again"), text);
  } catch (const CompileError& error) {
    FAIL() << error.what() << "\n" << text;
  }
}

class Patterns : public testing::TestWithParam<fs::path> {};

TEST_P(Patterns, AsExpected) {
  const std::string text = read(GetParam());
  std::string source = part(text, "", "# SEARCHED\n"), result;
  const std::string searched = part(text, "# SEARCHED\n", "# EXPECT\n");
  try {
    const PatternFile file = read_pattern_file(source);
    for (const auto& [name, pattern] : file.named) expect_round_trip(pattern);
    if (!searched.empty()) result = matches(file, parse_module(searched));
    if (!file.rewriters.empty() && !searched.empty()) {
      result = print(file.rewriter()(parse_module(searched)));
    }
  } catch (const CompileError& error) {
    for (const Diagnostic& diagnostic : error.diagnostics())
      result += fmt::format("# {}:{} {}: {}\n", diagnostic.origin ? diagnostic.origin->line : 0,
                            diagnostic.origin ? diagnostic.origin->column : 0, diagnostic.code.name,
                            diagnostic.message);
  }
  const char* update = std::getenv("TENON_UPDATE_GOLDEN");
  if (update && std::string(update) == "1") {
    std::ofstream(GetParam(), std::ios::binary | std::ios::trunc) << source << "# SEARCHED\n"
                                                                  << searched << "# EXPECT\n"
                                                                  << result;
    return;
  }
  EXPECT_EQ(result, part(text, "# EXPECT\n", ""));
}

std::vector<fs::path> files() {
  std::vector<fs::path> out;
  for (const auto& entry : fs::directory_iterator(fs::path(TENON_SOURCE_DIR) / "tests/patterns"))
    if (entry.path().extension() == ".py") out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

INSTANTIATE_TEST_SUITE_P(Golden, Patterns, testing::ValuesIn(files()),
                         [](const auto& info) { return info.param.stem().string(); });

}  // namespace
}  // namespace tenon::script
