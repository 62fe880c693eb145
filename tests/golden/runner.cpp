// Runs the golden tests: TVMScript and Relay files under tests/golden/, each one test. In a .relay
// file `//` stands for `#` below; what it gives is TVMScript.
//
//   # RUN: FuseOps, PlanMemory(pool="a")   passes to run; may be absent: the text is only read
//   ...                                    the module
//   # EXPECT
//   ...                                    the module afterwards, as the printer writes it
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
      const IRModule module = module_of(input);
      expect_round_trip(module);
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
      const IRModule module = module_of(source);
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
