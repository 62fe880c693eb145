// Runs the golden tests: TVMScript and Relay files under tests/golden/, each one test. In a .relay
// file `//` stands for `#` below; what it gives is TVMScript.
//
//   # RUN: FuseOps, PlanMemory(pool="a")   passes to run; may be absent: the text is only read
//   ...                                    the module
//   # EXPECT
//   ...                                    the module afterwards, as the printer writes it
//
//   # BACKEND: toy cost=1e-7 priority=1 refuse=shape
//
// is a back end that is there for this file: its patterns are the module's functions with attr
// `Pattern` that begin with its name and a dot, which are taken out of it; RunCodegen makes calls
// by name of what it takes. It may declare a cost in seconds for every match, and refuse each with
// a reason code.
//
// In a file whose name begins with `fail_` the line below an error marks its place and words:
//
//           y = R.matmul(a, b)
//       # ERROR ^^^^^^^^^^^^^^ `matmul` inner dimensions differ: 64 and 32
//
// (`# ERROR:5 ^^^` states the column where it is too far to the left to stand under it). A file
// with a line `# NOTES` marks the notes of its errors alike, as `# NOTE`. With
// TENON_UPDATE_GOLDEN=1 what follows EXPECT, ERROR and NOTE is rewritten.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tenon/script/parser.h"
#include "tenon/script/printer.h"
#include "tenon/script/relay/read_relay.h"
#if __has_include("tenon/driver/pass_list.h")
#include "tenon/driver/pass_list.h"
#include "tenon/driver/passes.h"
#include "tenon/driver/verify.h"
#include "tenon/graph/backend.h"
#define TENON_HAS_PASSES 1
#endif

namespace tenon {
namespace {

namespace fs = std::filesystem;

bool updates() {
  const char* flag = std::getenv("TENON_UPDATE_GOLDEN");
  return flag && std::string_view(flag) == "1";
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

bool begins(const std::string& line, std::string_view mark) {
  const size_t at = line.find_first_not_of(' ');
  return at != std::string::npos && std::string_view(line).substr(at).starts_with(mark);
}

// The lines without those that state errors.
std::string without_errors(const std::string& text, const std::string& comment) {
  std::string out;
  for (const std::string& line : lines_of(text)) {
    const bool is_note = begins(line, comment + " NOTE") && line != comment + " NOTES";
    if (!is_note && !begins(line, comment + " ERROR")) out += line + "\n";
  }
  return out;
}

std::string with_errors(const std::string& source, const std::vector<Diagnostic>& diagnostics,
                        const std::string& comment) {
  struct Mark {
    Origin origin;
    std::string kind, message;
  };
  std::map<uint32_t, std::vector<Mark>> by_line;
  std::string elsewhere;
  const auto add = [&](const Origin& origin, const std::string& kind, const std::string& message) {
    if (origin && origin->kind == OriginInfo::Kind::kScript) {
      by_line[origin->line].push_back({origin, kind, message});
    } else {
      elsewhere += comment + " " + kind + ": " + message + "\n";
    }
  };
  const std::string notes = comment + " NOTES\n";
  const bool shows_notes =
      source.starts_with(notes) || source.find("\n" + notes) != std::string::npos;
  for (const Diagnostic& diagnostic : diagnostics) {
    add(diagnostic.origin, "ERROR", diagnostic.message);
    if (!shows_notes) continue;
    for (const Note& note : diagnostic.notes) add(note.origin, "NOTE", note.message);
  }
  std::string out;
  uint32_t number = 0;
  for (const std::string& line : lines_of(source)) {
    out += line + "\n";
    for (const Mark& mark : by_line[++number]) {
      const uint32_t column = mark.origin->column;
      const std::string carets(std::max<uint32_t>(1, mark.origin->length), '^');
      const std::string words = comment + " " + mark.kind;
      const auto width = static_cast<uint32_t>(words.size() + 1);
      const std::string lead = column > width ? std::string(column - 1 - width, ' ') + words + " "
                                              : words + ":" + std::to_string(column) + " ";
      out += lead + carets + " " + mark.message + "\n";
    }
    by_line.erase(number);
  }
  for (const auto& [beyond, rest] : by_line)
    for (const Mark& mark : rest) out += comment + " " + mark.kind + ": " + mark.message + "\n";
  return out + elsewhere;
}

std::string passes_of(const std::string& text) {
  std::string out;
  for (const std::string& line : lines_of(text)) {
    if (!line.starts_with("# RUN:")) continue;
    out += (out.empty() ? "" : ",") + line.substr(6);
  }
  return out;
}

#ifdef TENON_HAS_PASSES
/// The back ends of a file, registered while it lives.
class Backends {
 public:
  Backends(const std::string& text, IRModule& module) {
    for (const std::string& line : lines_of(text))
      if (line.starts_with("# BACKEND:")) add(line.substr(10), module);
  }
  ~Backends() {
    for (const std::string& name : names_) graph::unregister_backend(name);
  }
  Backends(const Backends&) = delete;
  Backends& operator=(const Backends&) = delete;

 private:
  void add(const std::string& words, IRModule& module) {
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
      if (!function->attrs.get<std::string>("Pattern").value_or("").starts_with(name + "."))
        continue;
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

  std::vector<std::string> names_;
};
#else
struct Backends {
  Backends(const std::string&, IRModule&) {}
};
#endif

void expect_round_trip(const IRModule& module) {
  script::ConstantStore store;
  script::PrintOptions options;
  options.constants = &store;
  const std::string text = script::print(module, options);
  try {
    const IRModule again = script::parse_module(text, {.constants = &store});
    const auto difference = structural_difference(module, again);
    EXPECT_FALSE(difference) << difference->where << ": " << difference->message << "\n" << text;
  } catch (const CompileError& error) {
    FAIL() << "what was printed does not read back: " << error.what();
  }
}

IRModule run(IRModule module, const std::string& passes) {
#ifdef TENON_HAS_PASSES
  verify_module(module);
  PassRunner runner;
  runner.verify = [](const IRModule& changed) { verify_module(changed); };
  runner.after = [](const Pass&, const IRModule& after) { expect_round_trip(after); };
  return runner.run(std::move(module), parse_pass_list(passes));
#else
  if (passes.find_first_not_of(' ') != std::string::npos)
    ADD_FAILURE() << "this build has no passes";
  return module;
#endif
}

class GoldenTest : public testing::Test {
 public:
  explicit GoldenTest(fs::path path) : path_(std::move(path)), comment_(is_relay() ? "//" : "#") {}

  void TestBody() override {
    const std::string text = read(path_);
    if (path_.filename().string().starts_with("fail_")) return fails(text);
    const std::string mark = comment_ + " EXPECT\n";
    const size_t at = text.find(mark);
    const std::string input = text.substr(0, at);
    std::string output;
    try {
      IRModule module = module_of(input);
      expect_round_trip(module);
      const Backends backends(input, module);
      const IRModule after = run(module, passes_of(input));
      expect_round_trip(after);
      output = script::print(after, {.header = false});
    } catch (const CompileError& error) {
      FAIL() << error.what();
    }
    if (at == std::string::npos) return;
    const std::string expected = text.substr(at + mark.size());
    if (updates()) {
      if (expected != output) write(path_, input + mark + output);
    } else {
      EXPECT_EQ(output, expected);
    }
  }

 private:
  void fails(const std::string& text) {
    const std::string source = without_errors(text, comment_);
    std::string actual = source;
    try {
      IRModule module = module_of(source);
      const Backends backends(source, module);
      run(module, passes_of(source));
      ADD_FAILURE() << "no error was found";
    } catch (const CompileError& error) {
      actual = with_errors(source, error.diagnostics(), comment_);
    }
    if (updates()) {
      if (actual != text) write(path_, actual);
    } else {
      EXPECT_EQ(actual, text);
    }
  }

  bool is_relay() const { return path_.extension() == ".relay"; }
  IRModule module_of(const std::string& text) const {
    const auto file = std::make_shared<const SourceFile>(SourceFile{path_.string(), text});
    return is_relay() ? script::relay::read_relay(file) : script::parse_module(file);
  }

  fs::path path_;
  std::string comment_;
};

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const std::filesystem::path root = std::filesystem::path(TENON_SOURCE_DIR) / "tests" / "golden";
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root))
    if (entry.path().extension() == ".tvmscript" || entry.path().extension() == ".relay")
      paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  for (const auto& path : paths) {
    std::string suite = std::filesystem::relative(path.parent_path(), root).string();
    std::replace(suite.begin(), suite.end(), '/', '_');
    testing::RegisterTest(suite.c_str(), path.stem().string().c_str(), nullptr, nullptr,
                          path.string().c_str(), 1,
                          [path]() -> testing::Test* { return new tenon::GoldenTest(path); });
  }
  return RUN_ALL_TESTS();
}
