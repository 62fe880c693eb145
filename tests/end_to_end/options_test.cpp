// SPDX-License-Identifier: Apache-2.0
// Every option in every form of every command, over the binary: what the table of options
// (`tenon options`) calls an error or a warning is told, and what it says to apply shows in what
// the command does.
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <vector>

#include "command.h"

namespace {

using tenon::testing_command::CommandTest;
using tenon::testing_command::Outcome;
using tenon::testing_command::read;
namespace fs = std::filesystem;

// A command line of a form, without the option. DIR is the test's folder.
const std::map<std::string, std::string> kBases = {
    {"run native", "run DIR/m.py"},
    {"run c", "run DIR/m.py --target c"},
    {"run compiled", "run DIR/m.so"},
    {"run interpret", "run DIR/m.py --interpret"},
    {"compile native", "compile examples/digits/digits_b1.onnx -o DIR/made"},
    {"compile c", "compile examples/digits/digits_b1.onnx -o DIR/made --target c"},
    {"show compiled", "show DIR/m.so"},
    {"show model", "show DIR/m.py"},
    {"bench native", "bench DIR/m.py --repeat 1"},
    {"bench c", "bench DIR/m.py --repeat 1 --target c"},
    {"bench compiled", "bench DIR/m.so --repeat 1"},
    {"test-onnx native", "test-onnx DIR/case"},
    {"test-onnx c", "test-onnx DIR/case --target c"},
    {"test-onnx interpret", "test-onnx DIR/case --interpret"},
    {"print read", "print DIR/m.py"},
    {"print passes", "print DIR/m.py --passes DeadCodeElimination"},
    {"opt list", "opt --list-passes"},
    {"opt pipeline", "opt --print-pipeline"},
    {"opt read", "opt DIR/m.py"},
    {"opt passes", "opt DIR/m.py --passes DeadCodeElimination"},
    {"explain remarks", "explain DIR/m.py"},
    {"explain node", "explain examples/digits/digits_b1.onnx conv2"},
    {"explain page", "explain DIR/m.py -o DIR/made"},
    {"report native", "report DIR/m.py -o DIR/made --repeat 1"},
    {"report c", "report DIR/m.py -o DIR/made --target c"},
    {"check files", "check DIR/m.py"},
    {"check kernels", "check --kernels examples/own_kernel/wrong/shape.py --trials 1"},
    {"plan csv", "plan DIR/p.csv"},
    {"bisect native", "bisect DIR/m.py -o DIR/found.py"},
    {"bisect c", "bisect DIR/m.py -o DIR/found.py --target c"},
    {"reduce model", "reduce DIR/m.py --fails false -o DIR/made"},
    {"operators onnx", "operators"},
    {"operators graph", "operators --graph"},
    {"operators page", "operators --markdown"},
    {"passes table", "passes"},
    {"relay-operators table", "relay-operators"},
    {"diagnostics table", "diagnostics"},
    {"options table", "options"},
};

// What shows that an option is looked at: a value that changes what the command says, writes, or
// how it ends. Where the base has the option already, it is given in its place.
struct Probe {
  std::string arguments;
  std::string with = {};  // given with and without the option
};

const std::map<std::string, Probe> kProbes = {
    {"--out", {"--out DIR/other"}},
    {"--json", {"--json"}},
    {"test-onnx --json", {"--json DIR/none/results.json"}},
    {"--markdown", {"--markdown"}},
    {"--graph", {"--graph"}},
    {"--emit", {"--emit nonsense"}},
    {"--name", {"--name other"}},
    {"--params", {"--params DIR/none.params"}},
    {"--shape", {"--shape x"}},
    {"--bound", {"--bound nonsense=3"}},
    {"--length", {"--length x"}},
    {"--max-steps", {"--max-steps -1"}},
    {"--fp", {"--fp nonsense"}},
    {"--input", {"--input x=DIR/none.npy"}},
    {"--dim", {"--dim nonsense=3"}},
    {"--seed", {"--seed 7"}},
    {"--compare", {"--compare"}},
    {"--size", {"--size nonsense"}},
    {"check --tolerance", {"--tolerance -1"}},
    {"--interpret", {"--interpret", "--pipeline DIR/short.txt"}},  // too short to compile
    {"--repeat", {"--repeat 0"}},
    {"--threads", {"--threads 100000"}},
    {"--per-kernel", {"--per-kernel"}},
    {"--profile", {"--profile DIR/none/trace.json"}},
    {"report --repeat", {"--repeat -1"}},
    {"-k", {"-k nonsense"}},
    {"--tolerance", {"--tolerance 1e30"}},
    {"--verbose", {"--verbose", "--tolerance 1e30"}},
    {"--trials", {"--trials 0"}},
    {"--capacity", {"--capacity 1"}},
    {"--time-limit", {"--time-limit -1"}},
    {"--target", {"--target nonsense"}},
    {"--pool", {"--pool sram=nonsense"}},
    {"--include", {"--include DIR/none.h"}},
    {"--constants", {"--constants"}},
    {"--separate-arrays", {"--separate-arrays"}},
    {"--link", {"--link DIR/none.so"}},
    {"--call-by-name", {"--call-by-name nonsense"}},
    {"--signatures", {"--signatures DIR/none.py"}},
    {"--composite", {"--composite DIR/none.py"}},
    {"--composite-before", {"--composite-before Nonsense"}},
    {"--plugin", {"--plugin DIR/none.so"}},
    {"--in-process", {"--in-process", "--plugin DIR/exits.so"}},
    {"--plugin-timeout", {"--plugin-timeout 0.000001", "--plugin DIR/exits.so"}},
    {"--allow-code", {"--allow-code"}},
    {"--no-cache", {"--no-cache"}},
    {"--backend-option", {"--backend-option nonsense"}},
    {"--libs", {"--libs nonsense"}},
    {"--place", {"--place nonsense"}},
    {"--require-offload", {"--require-offload 90%"}},
    {"--kernels", {"--kernels DIR/none.py"}},
    {"--kernel", {"--kernel nonsense"}},
    {"--passes", {"--passes Nonsense"}},
    {"--pipeline", {"--pipeline DIR/none.txt"}},
    {"--rewrite", {"--rewrite DIR/none.py"}},
    {"--plan", {"--plan DIR/none.json"}},
    {"--tuned", {"--tuned DIR/none.db"}},
    {"--machine", {"--machine nonsense"}},
    {"--write-plan", {"--write-plan DIR/none/plans.json"}},
    {"--after", {"--after Nonsense"}},
    {"--pass", {"--pass FuseOps"}},
    {"--print-after", {"--print-after Nonsense"}},
    {"--validate", {"--validate"}},
    {"--check-text", {"--check-text"}},
    {"--no-verify", {"--no-verify"}},
    {"--timings", {"--timings"}},
    {"--unchecked", {"--unchecked", "--pipeline DIR/checks.txt"}},
    {"--fails", {"--fails true"}},
    {"--wrong", {"--wrong"}},
    {"--crashes", {"--crashes"}},
    {"--message", {"--message nonsense"}},
    {"--run-limit", {"--run-limit -1"}},
    {"--list-passes", {"--list-passes"}},
    {"--print-pipeline", {"--print-pipeline"}},
    {"NODE", {"conv2"}},
    {"NAME", {"Conv"}},
};

// Of what these commands find where something is wrong: their own tests look at it.
const std::set<std::string> kOfFaults = {"--out", "--json", "--time-limit", "--run-limit",
                                         "--call-by-name"};

// What shows it is a model that brings code (trust_test.cpp has some for every command), or a cache
// (artefact_cache_test.cpp).
const std::set<std::string> kElsewhere = {"--allow-code", "--no-cache"};

struct Row {
  std::string command, form, option, use;
};

class OptionsTest : public CommandTest, public testing::WithParamInterface<const char*> {
 protected:
  OptionsTest() : CommandTest("options") {}

  void SetUp() override {
    CommandTest::SetUp();
    fs::create_directories(folder_ + "/case");
    // A composite, an operator that has a kernel of one's own, and a buffer between two kernels.
    write("m.py",
          "@I.ir_module\n"
          "class Module:\n"
          "    @R.function\n"
          "    def twice(x: R.Tensor((4, 8), \"float32\")) -> R.Tensor((4, 8), \"float32\"):\n"
          "        R.func_attr({\"Composite\": \"toy.twice\"})\n"
          "        y: R.Tensor((4, 8), \"float32\") = R.add(x, x)\n"
          "        return y\n"
          "    @R.function\n"
          "    def main(x: R.Tensor((4, 8), \"float32\")) -> R.Tensor((4, 8), \"float32\"):\n"
          "        cls = Module\n"
          "        y: R.Tensor((4, 8), \"float32\") = cls.twice(x)\n"
          "        z: R.Tensor((4, 8), \"float32\") = R.nn.softmax(y, axis=-1)\n"
          "        w: R.Tensor((8, 4), \"float32\") = R.permute_dims(z)\n"
          "        u: R.Tensor((4, 4), \"float32\") = R.matmul(z, w)\n"
          "        v: R.Tensor((4, 8), \"float32\") = R.matmul(u, "
          "R.const([[1, 2, 3, 4, 5, 6, 7, 8], [1, 2, 3, 4, 5, 6, 7, 8], "
          "[1, 2, 3, 4, 5, 6, 7, 8], [1, 2, 3, 4, 5, 6, 7, 8]], \"float32\"))\n"
          "        return v\n");
    write("short.txt", "DeadCodeElimination\n");
    write("checks.txt", "InstrumentBoundCheckers(unchecked=\"7\")\n");
    write("p.csv", "id,lower,upper,size\na,0,3,16\nb,2,5,16\n");
    fs::copy_file(std::string(TENON_SOURCE_DIR) + "/examples/digits/digits_b1.onnx",
                  folder_ + "/case/digits.onnx");
    // Ten zeros as an ONNX tensor: dims 1 and 10, float32, raw data.
    std::string tensor("\x08\x01\x08\x0a\x10\x01\x4a\x28", 8);
    tensor.append(40, '\0');
    write("case/digits_output_0.pb", tensor);
    // A plugin that ends the process that it is loaded into.
    write("exits.c",
          "#include <unistd.h>\n__attribute__((constructor)) static void leave(void) { _exit(0); "
          "}\n");
    ASSERT_EQ(shell("cc -shared -fPIC " + folder_ + "/exits.c -o " + folder_ + "/exits.so").status,
              0);
    if (needs_program())
      ASSERT_EQ(tenon("compile " + folder_ + "/m.py -o " + folder_ + "/m.so").status, 0);
  }

  bool needs_program() const {
    const std::string command = GetParam();
    return command == "run" || command == "bench" || command == "show";
  }

  std::string in_folder(std::string text) const {
    for (size_t at = 0; (at = text.find("DIR", at)) != std::string::npos;)
      text.replace(at, 3, folder_);
    return text;
  }

  std::vector<Row> rows() const {
    std::istringstream lines(tenon("options").out);
    std::vector<Row> rows;
    for (std::string line; std::getline(lines, line);) {
      Row row;
      std::istringstream words(line);
      words >> row.command >> row.form >> row.option;
      std::getline(words >> std::ws, row.use);
      rows.push_back(row);
    }
    return rows;
  }

  // A page marks what was measured.
  static std::string without_times(const std::string& text) {
    std::string out;
    for (size_t at = 0;;) {
      const size_t begin = text.find("<!--t-->", at);
      out += text.substr(at, begin - at);
      if (begin == std::string::npos) return out;
      at = text.find("<!--/t-->", begin);
      if (at == std::string::npos) return out;
    }
  }

  // All that a run of the command leaves to be seen, without times.
  std::string seen(const std::string& arguments) const {
    fs::remove_all(folder_ + "/made");
    fs::remove_all(folder_ + "/other");
    const Outcome outcome = tenon(in_folder(arguments));
    static const std::regex times(
        "(compile|load|run|[^ ]*m\\.(py|so)) .*|"
        "[0-9.]+ (s|ms|us)\\b|[0-9.]+%|[0-9]+\\.[0-9]+ ");
    std::string all = std::to_string(outcome.status) + "\n" +
                      std::regex_replace(outcome.out, times, "#") + outcome.err;
    for (const char* place : {"/made", "/other"}) {
      if (fs::is_regular_file(folder_ + place)) all += place + without_times(read(folder_ + place));
      if (!fs::is_directory(folder_ + place)) continue;
      std::map<std::string, std::string> files;
      for (const auto& file : fs::recursive_directory_iterator(folder_ + place))
        if (file.is_regular_file()) files[file.path().string()] = read(file.path().string());
      for (const auto& [name, text] : files) all += name + "\n" + text;
    }
    return all;
  }

  // The base with the option in it; one that it has already is replaced.
  static std::string with(const std::string& base, const std::string& option,
                          const std::string& arguments) {
    if (option == "--out" && base.find(" -o ") != std::string::npos)
      return std::regex_replace(base, std::regex(" -o [^ ]+"), " " + arguments);
    const std::regex given(" " + option + " [^ ]+");
    if (std::regex_search(base, given)) return std::regex_replace(base, given, " " + arguments);
    return base + " " + arguments;
  }

  std::map<std::string, std::string> plain_;  // what commands without the option show

  void expect_told(const std::string& arguments, const char* code, int status) const {
    const Outcome outcome = tenon(in_folder(arguments));
    EXPECT_NE(outcome.err.find(code), std::string::npos) << arguments << "\n" << outcome.err;
    if (status >= 0) EXPECT_EQ(outcome.status, status) << arguments << "\n" << outcome.err;
  }
  void expect_not_told(const std::string& arguments) const {
    const Outcome outcome = tenon(in_folder(arguments));
    EXPECT_EQ(outcome.err.find("[TN0010]"), std::string::npos) << arguments << "\n" << outcome.err;
    EXPECT_EQ(outcome.err.find("[TN0011]"), std::string::npos) << arguments << "\n" << outcome.err;
  }
};

// What the forms are chosen by, and what every command line of them has.
bool is_of_the_base(const Row& row, const std::string& base) {
  if (row.option == "NODE") return row.form == "node";
  if (row.option == "NAME") return false;
  if (row.option[0] != '-') return true;
  return base.find(" " + row.option) != std::string::npos &&
         (row.option == "--interpret" || row.option == "--list-passes" ||
          row.option == "--print-pipeline" || row.option == "--markdown" ||
          row.option == "--graph");
}

TEST_P(OptionsTest, NoneIsSilent) {
  const std::string command = GetParam();
  int walked = 0;
  for (const Row& row : rows()) {
    if (row.command != command) continue;
    ++walked;
    const auto base = kBases.find(row.command + " " + row.form);
    ASSERT_NE(base, kBases.end()) << "no command line of form `" << row.form << "`";
    if (is_of_the_base(row, base->second) && row.use == "yes") continue;
    if (command == "bisect" && kOfFaults.count(row.option)) continue;
    if (row.use == "yes" && kElsewhere.count(row.option)) continue;
    SCOPED_TRACE(row.command + " " + row.form + ": " + row.option + " " + row.use);
    auto probe = kProbes.find(row.command + " " + row.option);
    if (probe == kProbes.end()) probe = kProbes.find(row.option);
    if (probe == kProbes.end() && row.use == "yes") {
      ADD_FAILURE() << "nothing is known that would show whether the option is looked at";
      continue;
    }
    const std::string arguments = probe == kProbes.end() ? "DIR/m.py" : probe->second.arguments;
    const std::string changed = with(base->second, row.option, arguments);
    if (row.use == "error") {
      expect_told(changed, "error[TN0011]", 2);
    } else if (row.use == "warning") {
      expect_told(changed, "warning[TN0010]", -1);
    } else if (row.use == "error alone") {
      expect_told(changed, "error[TN0011]", 2);
      const bool is_of_patterns = command == "print" || row.option == "--composite-before";
      expect_not_told(changed + (is_of_patterns ? " --composite DIR/none.py"
                                                : " --passes DeadCodeElimination"));
    } else if (row.use == "warning alone") {
      expect_told(changed, "warning[TN0010]", -1);
      expect_not_told(changed + " --passes DeadCodeElimination");
    } else {
      ASSERT_EQ(row.use, "yes");
      const std::string& extra = probe->second.with;
      const std::string plain = base->second + (extra.empty() ? "" : " " + extra);
      const auto known = plain_.find(plain);
      const std::string before =
          known != plain_.end() ? known->second : plain_[plain] = seen(plain);
      const std::string after = seen(with(plain, row.option, arguments));
      EXPECT_NE(before, after) << in_folder(with(plain, row.option, arguments));
      EXPECT_EQ(after.find("[TN0010]"), std::string::npos) << after;
      EXPECT_EQ(after.find("[TN0011]"), std::string::npos) << after;
    }
  }
  EXPECT_GT(walked, 0);
}

INSTANTIATE_TEST_SUITE_P(Commands, OptionsTest,
                         testing::Values("run", "compile", "show", "bench", "test-onnx", "print",
                                         "opt", "explain", "report", "check", "plan", "bisect",
                                         "reduce", "operators", "passes", "relay-operators",
                                         "diagnostics", "options"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase(name, '-');
                           return name;
                         });

class OptionTableTest : public CommandTest {
 protected:
  OptionTableTest() : CommandTest("option_table") {}
};

// Every command of the help has its rows, every option of a command's help is in the table.
TEST_F(OptionTableTest, HasAllThatTheHelpHas) {
  const std::string table = tenon("options").out;
  std::istringstream commands(tenon("--help").out);
  std::string line;
  int found = 0;
  while (std::getline(commands, line)) {
    if (!line.starts_with("  ") || line[2] == ' ' || line[2] == '-') continue;
    std::istringstream words(line);
    std::string command;
    words >> command;
    ++found;
    EXPECT_NE(("\n" + table).find("\n" + command + " "), std::string::npos) << command;
    std::istringstream help(tenon(command + " --help").out);
    static const std::regex option_line("^  (?:-[a-z],)?(--[a-z-]+|-[a-z])(?: .*|=.*)?");
    for (std::string help_line; std::getline(help, help_line);) {
      std::smatch match;
      if (!std::regex_match(help_line, match, option_line) || match[1] == "--help") continue;
      const std::regex row("(^|\n)" + command + " +[a-z]+ +" + match[1].str() + " ");
      EXPECT_TRUE(std::regex_search(table, row)) << command << " " << match[1];
    }
  }
  EXPECT_GE(found, 14);
}

// One value each time: what follows it is the command's own.
TEST_F(OptionTableTest, OptionsDoNotTakeWhatFollowsTheirValue) {
  const std::string model = "examples/digits/digits_b1.onnx";
  write("a.c", "int nobody_calls_this(void) { return 0; }\n");
  // The node is told about, whichever repeatable option stands in front of it.
  for (const std::string& option :
       {"--link " + folder_ + "/a.c", std::string("--place conv1=none"),
        std::string("--call-by-name toy"), std::string("--composite examples/none.py"),
        std::string("--signatures examples/none.py"), std::string("--params none.params"),
        std::string("--shape x=1"), std::string("--backend-option a.b=c"),
        std::string("--plugin none.so"), std::string("--kernels none.py"),
        std::string("--kernel a=b:c")}) {
    const Outcome outcome = tenon("explain " + model + " " + option + " conv2");
    EXPECT_EQ(outcome.err.find("conv2"), std::string::npos) << outcome.err;
    if (outcome.status == 0)
      EXPECT_TRUE(outcome.out.starts_with("node         conv2\n")) << outcome.out;
    expect_error("explain " + model + " conv2 " + option + " left_over", 2,
                 "takes MODEL NODE, and `");
  }
  EXPECT_TRUE(tenon("explain " + model + " --link " + folder_ + "/a.c conv2")
                  .out.starts_with("node         conv2\n"));
  // In front of the model as well.
  for (const char* option : {"--input image=examples/digits/none.npy", "--dim batch=2",
                             "--require-offload 0%", "--print-after FuseOps"}) {
    const std::string arguments = "run " + std::string(option) + " examples/digits/digits.onnx";
    EXPECT_EQ(tenon(arguments).err.find("MODEL is required"), std::string::npos) << arguments;
  }
  // Repeated, both are looked at.
  expect_error("run " + model + " --plugin none_1.so --plugin none_2.so", 1, "there is no such");
  expect_error("run " + model + " -i a=b -i a=c", 2, "the input is given twice");
}

// What matches nothing, and what nothing uses, is told by every command that reads it.
TEST_F(OptionTableTest, WhatIsInVainIsTold) {
  const std::string model = " examples/digits/digits_b1.onnx ";
  write("pattern.py",
        "@R.function\ndef sinus(x: R.Tensor((\"n\",), \"float32\")):\n"
        "    R.func_attr({\"Composite\": \"toy.sinus\"})\n    y = R.sin(x)\n    return y\n");
  write("combinators.py", "toy_sinus = is_op(\"sin\")(wildcard())\n");
  write("rules.py",
        "@R.rewriter\nclass Sinus:\n    @R.function\n"
        "    def pattern(x: R.Tensor((\"n\",), \"float32\")):\n        y = R.sin(x)\n"
        "        return y\n    @R.function\n"
        "    def replacement(x: R.Tensor((\"n\",), \"float32\")):\n        y = R.cos(x)\n"
        "        return y\n");
  write("vain.c", "int nobody_calls_this(void) { return 0; }\n");
  write("signatures.py",
        "@T.extern_func\ndef nobody(x: T.Buffer((4,), \"float32\"), y: T.Buffer((4,), "
        "\"float32\")):\n    T.func_attr({\"effects\": [\"in\", \"out\"]})\n");
  const std::string out = " -o " + folder_ + "/made ";
  const auto expect_warning = [&](const std::string& arguments, const char* text) {
    const Outcome outcome = tenon(arguments);
    EXPECT_EQ(outcome.status, 0) << arguments << "\n" << outcome.err;
    EXPECT_NE(outcome.err.find(text), std::string::npos) << arguments << "\n" << outcome.err;
  };
  const std::string pattern = "--composite " + folder_ + "/pattern.py";
  const std::string combinators = "--call-by-name toy --composite " + folder_ + "/combinators.py";
  for (const std::string& asked : {pattern, combinators}) {
    for (const char* command : {"run", "run --interpret", "bench --repeat 1", "explain", "opt",
                                "print --after LegalizeOps", "run --target c"})
      expect_warning(command + model + asked, "warning[TN0012]: pattern `");
    expect_warning("compile" + model + out + asked, "warning[TN0012]: pattern `");
    expect_warning("compile --target c" + model + out + asked, "warning[TN0012]: pattern `");
  }
  expect_warning("opt" + model + "--rewrite " + folder_ + "/rules.py",
                 "warning[TN0012]: rewriter `");
  expect_warning("opt" + model + "--passes 'RewritePatterns(file=\"" + folder_ + "/rules.py\")'",
                 "warning[TN0012]: rewriter `");
  expect_warning("run" + model + "--call-by-name toy",
                 "warning[TN0012]: examples/digits/digits_b1.onnx has no composite of `toy`");
  for (const char* command : {"run", "run --target c", "bench --repeat 1"}) {
    expect_warning(command + model + "--link " + folder_ + "/vain.c", "warning[TN0013]: --link ");
    expect_warning(command + model + "--signatures " + folder_ + "/signatures.py",
                   "warning[TN0013]: --signatures ");
  }
  expect_warning("compile" + model + out + "--link " + folder_ + "/vain.c",
                 "warning[TN0013]: --link ");
  for (const char* command : {"run", "run --interpret", "explain"})
    expect_warning(command + std::string(" examples/digits/digits_b1.onnx --kernels ") +
                       "examples/own_kernel/wrong/init.py",
                   "warning[TN0013]: no kernel of examples/own_kernel/wrong/init.py is used");
  expect_error("run" + model + "--backend-option dnnl.x=1", 2, "has no options");
}

}  // namespace
