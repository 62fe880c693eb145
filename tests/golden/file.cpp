// SPDX-License-Identifier: Apache-2.0
#include "file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "tenon/driver/pass_list.h"
#include "tenon/graph/backend.h"
#include "tenon/import/relay/read_relay.h"
#include "tenon/script/parser.h"
#include "tenon/script/trace_text.h"

namespace tenon::golden {

namespace fs = std::filesystem;

fs::path root() { return fs::path(TENON_SOURCE_DIR) / "tests" / "golden"; }

std::vector<fs::path> all_files() {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::recursive_directory_iterator(root()))
    if (entry.path().extension() == ".tvmscript" || entry.path().extension() == ".relay")
      paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

void write(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::stringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

static bool is_relay(const fs::path& path) { return path.extension() == ".relay"; }

std::string comment_of(const fs::path& path) { return is_relay(path) ? "//" : "#"; }

bool expects_errors(const fs::path& path) { return path.filename().string().starts_with("fail_"); }

std::string input_of(const std::string& text, const std::string& comment) {
  return text.substr(0,
                     std::min(text.find(comment + " EXPECT\n"), text.find(comment + " TRACE\n")));
}

static std::string schedule_mark(const fs::path& path) { return comment_of(path) + " SCHEDULE\n"; }

IRModule scheduled(const fs::path& path, const std::string& text, IRModule module) {
  const std::string mark = schedule_mark(path);
  const size_t at = text.find(mark);
  if (at == std::string::npos) return module;
  // On the lines of the file, so that errors have their places.
  const auto lines = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  const auto file = std::make_shared<const SourceFile>(SourceFile{
      path.filename().string(),
      std::string(static_cast<size_t>(lines) + 1, '\n') + text.substr(at + mark.size())});
  const auto function = module.find<tir::PrimFunc>("main");
  module.set("main", tir::replay(script::parse_trace(file, function), function).func());
  return module;
}

IRModule module_of(const fs::path& path, const std::string& all) {
  const std::string text = all.substr(0, all.find(schedule_mark(path)));
  fs::current_path(path.parent_path());
  const auto file = std::make_shared<const SourceFile>(SourceFile{path.filename().string(), text});
  return is_relay(path) ? relay::read_relay(file) : script::parse_module(file);
}

// What follows `word` on the lines that begin with it.
static std::vector<std::string> after(const std::string& word, const std::string& text) {
  std::vector<std::string> found;
  for (const std::string& line : lines_of(text))
    if (line.starts_with(word)) found.push_back(line.substr(word.size()));
  return found;
}

Pipeline passes_of(const std::string& text, const std::string& comment) {
  std::string names;
  for (const std::string& some : after(comment + " RUN:", text))
    names += (names.empty() ? "" : ",") + some;
  return parse_pass_list(names);
}

Backends::Backends(const std::string& text, const std::string& comment, IRModule& module) {
  for (const std::string& words : after(comment + " BACKEND:", text)) add(words, module);
}

Backends::~Backends() {
  for (const std::string& name : names_) graph::unregister_backend(name);
}

void Backends::add(const std::string& words, IRModule& module) {
  std::stringstream in(words);
  std::string name, refusal;
  in >> name;
  graph::Backend backend = graph::call_by_name(name);
  for (std::string option; in >> option;) {
    const std::string value = option.substr(std::min(option.size(), option.find('=') + 1));
    if (option.starts_with("cost="))
      backend.cost = [cost = std::stod(value)](const graph::PatternCheck&) {
        return std::optional<double>(cost);
      };
    else if (option.starts_with("priority="))
      backend.priority = std::stoi(value);
    else if (option.starts_with("refuse="))
      refusal = value;
    else
      ADD_FAILURE() << "# BACKEND: no option " << option;
  }
  IRModule patterns;
  const std::vector<IRModule::Entry> entries = module.functions();
  for (const auto& [function_name, function] : entries) {
    if (!function->attrs.get<std::string>("Pattern").value_or("").starts_with(name + ".")) continue;
    patterns.set(function_name, function);
    module.erase(function_name);
  }
  backend.patterns = graph::read_patterns(patterns);
  EXPECT_FALSE(backend.patterns.empty()) << "# BACKEND: " << name << " has no pattern";
  if (!refusal.empty())
    for (graph::FusionPattern& pattern : backend.patterns)
      pattern.check = [refusal](const graph::PatternCheck&) {
        return graph::Verdict::refuse(refusal, "it does not take this");
      };
  graph::register_backend(std::move(backend));
  names_.push_back(name);
}

}  // namespace tenon::golden
