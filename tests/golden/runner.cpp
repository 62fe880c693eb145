// SPDX-License-Identifier: Apache-2.0
// Runs the golden tests: TVMScript and Relay files under tests/golden/, each one test. In a .relay
// file `//` stands for `#` below; what it gives is TVMScript.
//
//   # RUN: FuseOps, PlanMemory(pool="a")   passes to run; may be absent: the text is only read
//   ...                                    the module
//   # EXPECT
//   ...                                    the module afterwards, as the printer writes it; where
//                                          passes run it is needed, and an update adds it
//
// A line `# SCHEDULE` behind the module is followed by primitives of a schedule, a line of Python for
// each, which are applied to its function `main` first:
//
//   l0, l1 = sch.get_loops(sch.get_block("y"))
//   sch.fuse(l0, l1)
//
// `# TRACE` in the place of `# EXPECT` is followed by the primitives that DefaultSchedule, the last
// pass, applies to each function that it schedules.
//
// Modules under graph/ compute the same before and after each pass, where the interpreter can run
// them.
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
// with a line `# NOTES` marks the notes of its errors alike, as `# NOTE`. Lines `# -----` divide it
// into modules that are read one by one, each with an error of its own. With
// TENON_UPDATE_GOLDEN=1 what follows EXPECT, TRACE, ERROR and NOTE is rewritten.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "file.h"
#include "tenon/driver/validate.h"
#include "tenon/driver/verify.h"
#include "tenon/script/parser.h"
#include "tenon/script/printer.h"
#include "tenon/support/kernel_codes.h"
#include "tenon/support/validation_codes.h"
#include "tenon/tir/schedule/default_schedule.h"

namespace tenon::golden {
namespace {

namespace fs = std::filesystem;

bool updates() {
  const char* flag = std::getenv("TENON_UPDATE_GOLDEN");
  return flag && std::string_view(flag) == "1";
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

// Both compute the same, where the interpreter can tell: it knows no foreign functions, and what is
// declared to compute an operator may compute something else in a file that only shows choices.
void expect_same_results(Validator& validator, const Pass& pass, const IRModule& before,
                         const IRModule& after) {
  try {
    validator.compare(pass, before, after);
  } catch (const CompileError& error) {
    const std::string_view code = error.first().code.id;
    if (code != kNotCompared.id && code != kWrongResult.id) throw;
  }
}

struct RunOptions {
  bool compares = false;            // what the module computes before and after each pass
  IRModule* before_last = nullptr;  // gets what the last pass finds
};

IRModule run(IRModule module, const Pipeline& passes, const RunOptions& options = {}) {
  verify_module(module);
  Validator validator;
  PassRunner runner;
  if (options.before_last)
    runner.before = [&](const Pass&, const IRModule& given) { *options.before_last = given; };
  if (options.compares)
    runner.validate = [&](const Pass& pass, const IRModule& before, const IRModule& after) {
      expect_same_results(validator, pass, before, after);
    };
  runner.verify = [](const IRModule& changed) { verify_module(changed); };
  runner.after = [](const Pass&, const IRModule& after) { expect_round_trip(after); };
  return runner.run(std::move(module), passes);
}

// The trace of each function that DefaultSchedule made `after` of.
std::string traces_of(const IRModule& before, const IRModule& after) {
  const auto target = before.attrs.get<std::string>("target");
  if (!target) ADD_FAILURE() << "a trace is of one target: state the module's attribute `target`";
  constexpr const char* kScheduled = "tir.is_scheduled";
  std::string out;
  for (const auto& [name, function] : before.functions()) {
    const auto kernel = cast<tir::PrimFunc>(function);
    if (!kernel || kernel->attrs.flag(kScheduled) || !after.find(name)->attrs.flag(kScheduled))
      continue;
    const tir::Schedule schedule =
        tir::schedule_by_default(kernel, parse_target(target.value_or("llvm")));
    EXPECT_TRUE(structural_equal(schedule.func()->with_attr(kScheduled, true), after.find(name)));
    out += name + ":\n";
    for (const std::string& line : lines_of(schedule.trace().str())) out += "  " + line + "\n";
  }
  return out;
}

class GoldenTest : public testing::Test {
 public:
  explicit GoldenTest(fs::path path) : path_(std::move(path)), comment_(comment_of(path_)) {}

  void TestBody() override {
    const std::string text = read(path_);
    if (expects_errors(path_)) return fails(text);
    const std::string input = input_of(text, comment_);
    const bool wants_trace = text.substr(input.size()).starts_with(comment_ + " TRACE\n");
    std::string output;
    try {
      IRModule module = module_of(path_, input);
      expect_round_trip(module);
      const Backends backends(input, comment_, module);
      IRModule before_last;
      module = scheduled(path_, input, std::move(module));
      const bool is_graph = path_.parent_path().parent_path().filename() == "graph";
      const IRModule after =
          run(std::move(module), passes_of(input, comment_), {is_graph, &before_last});
      expect_round_trip(after);
      output =
          wants_trace ? traces_of(before_last, after) : script::print(after, {.header = false});
    } catch (const CompileError& error) {
      FAIL() << error.what();
    }
    const bool expects = input.size() != text.size();
    if (!expects && passes_of(input, comment_).empty()) return;
    const std::string mark = comment_ + (wants_trace ? " TRACE\n" : " EXPECT\n");
    const std::string expected = expects ? text.substr(input.size() + mark.size()) : "";
    if (updates()) {
      if (expected != output) write(path_, input + mark + output);
    } else {
      EXPECT_TRUE(expects) << "passes run, and no line `" << comment_
                           << " EXPECT` says what they give";
      EXPECT_EQ(output, expected);
    }
  }

 private:
  void fails(const std::string& text) {
    const std::string divider = comment_ + " -----\n";
    std::string actual;
    for (size_t at = 0; at < text.size();) {
      const size_t end = text.find(divider, at);
      actual += with_found_errors(without_errors(text.substr(at, end - at), comment_));
      if (end == std::string::npos) break;
      actual += divider;
      at = end + divider.size();
    }
    if (updates()) {
      if (actual != text) write(path_, actual);
    } else {
      EXPECT_EQ(actual, text);
    }
  }

  std::string with_found_errors(const std::string& source) {
    try {
      IRModule module = module_of(path_, source);
      const Backends backends(source, comment_, module);
      run(scheduled(path_, source, std::move(module)), passes_of(source, comment_));
    } catch (const CompileError& error) {
      return with_errors(source, error.diagnostics(), comment_);
    }
    ADD_FAILURE() << "no error was found in\n" << source;
    return source;
  }

  fs::path path_;
  std::string comment_;
};

}  // namespace
}  // namespace tenon::golden

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (const auto& path : tenon::golden::all_files()) {
    std::string suite =
        std::filesystem::relative(path.parent_path(), tenon::golden::root()).string();
    std::replace(suite.begin(), suite.end(), '/', '_');
    testing::RegisterTest(
        suite.c_str(), path.stem().string().c_str(), nullptr, nullptr, path.string().c_str(), 1,
        [path]() -> testing::Test* { return new tenon::golden::GoldenTest(path); });
  }
  return RUN_ALL_TESTS();
}
