// SPDX-License-Identifier: Apache-2.0
// The command line as scripts see it: exit status, both outputs, files.
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>

#include "command.h"

namespace {

using tenon::testing_command::CommandTest;
using tenon::testing_command::Outcome;
using tenon::testing_command::read;
namespace fs = std::filesystem;

class CommandLineTest : public CommandTest {
 protected:
  CommandLineTest() : CommandTest("command_line") {}
};

constexpr const char* kDigits = "examples/digits/digits.onnx";
constexpr const char* kDigits1 = "examples/digits/digits_b1.onnx";

TEST_F(CommandLineTest, KernelsOfOnesOwn) {
  const std::string network = "examples/own_kernel/classifier.onnx ";
  const std::string file = "examples/own_kernel/softmax.py";
  expect_error("run " + network + "--kernel softmax", 2, "expected OPERATOR=FILE:FUNCTION");
  expect_error("run " + network + "--kernel softmax=" + file + ":nope", 2,
               "has no PrimFunc `nope`; it has `my_softmax`");
  expect_error("run " + network + "--kernel /no/Node=" + file + ":my_softmax", 2,
               "the model has no node `/no/Node`");
  expect_error("run " + network + "--kernels examples/own_kernel/custom.onnx", 2,
               "expected TVMScript");
  expect_error("check --kernels examples/own_kernel/wrong/race.py", 1, "error[TN0904]");
  expect_error("check --kernels " + file + " --trials 0", 2, "--trials 0 is below 1");
  write("declared.py",
        "@R.function\n"
        "def clip(x: R.Tensor((\"n\",), \"float32\"), limit: R.Prim(\"float32\")) -> "
        "R.Tensor((\"n\",), \"float32\"):\n"
        "    R.func_attr({\"op\": \"com.example::SoftClip\"})\n    ...\n");
  expect_error(
      "run examples/own_kernel/custom.onnx --kernels " + folder_ + "/declared.py", 1,
      "input `x` of `com.example.SoftClip` is R.Tensor((batch, 24), \"float32\"); expected "
      "R.Tensor((n,), \"float32\")");
}

// Gemm is one operator for a kernel that computes all of it, and its parts for everyone else.
TEST_F(CommandLineTest, AKernelComputesAWholeGemm) {
  const auto dense = [](const std::string& annotations, const std::string& sum) {
    return "@T.prim_func\n"
           "def dense(a: T.Buffer((\"m\", \"k\"), \"float32\"), b: T.Buffer((\"n\", \"k\"), "
           "\"float32\"), c: T.Buffer((\"n\",), \"float32\"), y: T.Buffer((\"m\", \"n\"), "
           "\"float32\"), alpha: T.float32):\n    T.func_attr({" +
           annotations +
           "})\n    m = T.int64()\n    n = T.int64()\n    k = T.int64()\n"
           "    for i, j in T.grid(m, n):\n        y[i, j] = c[j]\n        for l in range(k):\n"
           "            y[i, j] = y[i, j] + alpha * a[i, l] * " +
           sum + "\n";
  };
  const std::string network = "run examples/own_kernel/classifier.onnx -o " + folder_;
  write("any.py", dense("", "b[j, l]"));
  write("gemm.py",
        dense("\"op\": \"Gemm\", \"op_attrs\": {\"transpose_a\": False, \"transpose_b\": True, "
              "\"beta\": 1.0}",
              "b[j, l]"));
  write("wrong.py",
        dense("\"op\": \"Gemm\", \"op_attrs\": {\"transpose_a\": False, \"transpose_b\": True, "
              "\"beta\": 1.0}",
              "b[j, 0]"));
  write("untransposed.py",
        dense("\"op\": \"Gemm\", \"op_attrs\": {\"transpose_b\": False}", "b[j, l]"));
  const std::string file = folder_ + "/any.py:dense";
  ASSERT_EQ(tenon(network + "/own").status, 0);
  int runs = 0;
  for (const std::string& option :
       {"--kernels " + folder_ + "/gemm.py", "--kernel gemm=" + file, "--kernel /fc0/Gemm=" + file,
        "--kernel /fc0/Gemm=" + folder_ + "/gemm.py:dense"}) {
    const std::string out = "/run" + std::to_string(++runs);
    const Outcome outcome = tenon(network + out + " " + option);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("dense in 1 place\n"), std::string::npos) << outcome.out;
    // Of a softmax of a softmax: what differs by rounding agrees in its first digits.
    const std::string own = read(folder_ + "/own/p.npy"), given = read(folder_ + out + "/p.npy");
    const size_t header = 128;  // of the .npy file
    ASSERT_EQ(own.size(), header + 4 * 10 * sizeof(float));
    ASSERT_EQ(own.size(), given.size());
    for (size_t at = header; at + sizeof(float) <= own.size(); at += sizeof(float)) {
      float a = 0, b = 0;
      std::memcpy(&a, own.data() + at, sizeof(float));
      std::memcpy(&b, given.data() + at, sizeof(float));
      EXPECT_NEAR(a, b, 1e-5F);
    }
  }
  // One that takes another form of it leaves its parts to others.
  const Outcome other = tenon(network + "/other --kernels " + folder_ + "/untransposed.py");
  EXPECT_EQ(other.status, 0) << other.err;
  EXPECT_NE(other.out.find("dense in 0 places; refused: 1 attribute"), std::string::npos)
      << other.out;
  EXPECT_EQ(read(folder_ + "/own/p.npy"), read(folder_ + "/other/p.npy"));
  EXPECT_EQ(tenon("check --kernels " + folder_ + "/gemm.py").status, 0);
  expect_error("check --kernels " + folder_ + "/wrong.py", 1, "error[TN0903]");
}

// What a user declares is what the operator means, also where the importer has it.
TEST_F(CommandLineTest, ADeclarationComesBeforeTheImportersOwn) {
  write("relu.py",
        "@R.function\n"
        "def relu(x: R.Tensor((\"n\", \"m\"), \"float32\")) -> R.Tensor((\"n\", \"m\"), "
        "\"float32\"):\n    R.func_attr({\"op\": \"ai.onnx::Relu\"})\n    ...\n\n"
        "@T.prim_func\n"
        "def my_relu(x: T.Buffer((\"n\", \"m\"), \"float32\"), y: T.Buffer((\"n\", \"m\"), "
        "\"float32\")):\n    T.func_attr({\"op\": \"ai.onnx::Relu\"})\n    n = T.int64()\n"
        "    m = T.int64()\n    for i, j in T.grid(n, m):\n        y[i, j] = T.max(x[i, j], "
        "T.float32(0))\n");
  const Outcome outcome =
      tenon("run examples/own_kernel/classifier.onnx --kernels " + folder_ + "/relu.py");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("warning[TN0013]: the importer's own `ai.onnx::Relu` is not used"),
            std::string::npos)
      << outcome.err;
  EXPECT_NE(outcome.out.find("my_relu in 1 place\n"), std::string::npos) << outcome.out;
}

TEST_F(CommandLineTest, WrongUsageIsStatus2) {
  expect_error("", 2, "no command is given");
  expect_error("fly", 2, "there is no command `fly`");
  expect_error("run", 2, "MODEL is required");
  expect_error(std::string("run ") + kDigits + " --repeat 0", 2, "--repeat 0 is below 1");
  expect_error(std::string("run ") + kDigits + " --threads -1", 2, "--threads -1 is not between");
  expect_error(std::string("run ") + kDigits + " --libs mkl", 2,
               "this build has no back end `mkl`");
  expect_error(std::string("run ") + kDigits + " --dim batch=x", 2, "expected a number");
  expect_error(std::string("run ") + kDigits + " --dim rows=2", 2, "no input has a dimension");
  expect_error(std::string("run ") + kDigits + " -i image", 2, "expected NAME=VALUE");
  expect_error(std::string("print ") + kDigits + " --after Fly", 2, "no pass `Fly`");
  expect_error(std::string("opt ") + kDigits + " --passes FuseOp", 2, "did you mean `FuseOps`");
  expect_error(std::string("compile ") + kDigits + " -o x.so --emit pdf", 2,
               "expected so, c, llvm, asm, tvmscript or c-example");
}

// What is misspelled is told with what was probably meant.
TEST_F(CommandLineTest, NamesThatAreNotThereGetSuggestions) {
  const std::string model = std::string(kDigits) + " ";
  expect_error("exlpain " + model, 2, "there is no command `exlpain`; did you mean `explain`?");
  expect_error("tuune " + model, 2, "there is no command `tuune`; did you mean `tune`?");
  expect_error("tune " + model, 2, "--db is required");
  expect_error("--verison", 2, "`tenon` has no option `--verison`; did you mean `--version`?");
  expect_error("run " + model + "--taret c", 2, "no option `--taret`; did you mean `--target`?");
  expect_error("run --moodel", 2, "`tenon run` has no option `--moodel`");
  expect_error("compile --ouput x.so " + model, 2, "did you mean `--out`?");
  expect_error("run " + model + "-y", 2, "no option `-y`; `tenon run --help` lists");
  expect_error("run " + model + "again", 2, "`tenon run` takes MODEL, and `again` is left over");
  expect_error("diagnostics TN0001", 2, "`tenon diagnostics` takes options alone");
  expect_error("run " + model + "-i imag=x.npy", 1, "did you mean `image`?");
  expect_error("run " + model + "--dim bach=2", 2, "did you mean `batch`?");
  expect_error("run " + model + "--print-after FuseOp", 2, "did you mean `FuseOps`?");
  expect_error("run " + model + "--target nativ", 1, "did you mean `native`?");
  expect_error("run " + model + "--libs nonee", 2, "did you mean `none`?");
  expect_error("run " + model + "--backend-option dnln.x=1", 2, "there is no back end `dnln`");
  expect_error("compile " + model + "-o x.so --emit asn", 2, "did you mean `asm`?");
  expect_error("explain " + model + "cnv2", 1, "did you mean `conv2`?");
  expect_error("explain " + model + "--pass FuseOp", 2, "did you mean `FuseOps`?");
  expect_error("operators Cnov", 2, "no operator's name contains `Cnov`; did you mean `Conv`?");
  expect_error("operators --graph nn.cnov2d", 2, "did you mean `nn.conv2d`?");
  const std::string network = "run examples/own_kernel/classifier.onnx --kernel ";
  const std::string file = "=examples/own_kernel/softmax.py:";
  expect_error(network + "Sofmax" + file + "my_softmax", 2, "did you mean `nn.softmax`?");
  expect_error(network + "/fc0/Gem" + file + "my_softmax", 2, "did you mean `/fc0/Gemm`?");
  expect_error(network + "softmax" + file + "my_sofmax", 2, "did you mean `my_softmax`?");
  expect_error("opt " + model +
                   "--passes 'BindSymbolicVars(binding_map={\"batch\": 1}, "
                   "func_name=\"mian\")'",
               1, "did you mean `main`?");
}

// A binding of a script is a node by its variable's name.
TEST_F(CommandLineTest, AKernelForOneBinding) {
  write("two.py",
        "@R.function\ndef main(x: R.Tensor((8,), \"float32\")):\n    a = R.nn.relu(x)\n"
        "    b = R.nn.relu(a)\n    return b\n");
  write("relu.py",
        "@T.prim_func\ndef my_relu(x: T.Buffer((8,), \"float32\"), y: T.Buffer((8,), "
        "\"float32\")):\n    for i in range(8):\n        y[i] = T.max(x[i], T.float32(0))\n");
  const std::string two = "run " + folder_ + "/two.py --kernel ",
                    kernel = "=" + folder_ + "/relu.py:my_relu";
  const Outcome outcome = tenon(two + "b" + kernel);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("my_relu in 1 place\n"), std::string::npos) << outcome.out;
  expect_error(two + "c" + kernel, 2, "the model has no node `c`");
}

// The options that commands share stand in groups, in lines that a terminal holds.
TEST_F(CommandLineTest, HelpHasGroups) {
  const std::string help = tenon("run --help").out;
  size_t at = 0;
  for (const char* title :
       {"What is read, and what comes of it", "How it runs", "What it is compiled for",
        "Libraries, called by name", "Back ends, and what is placed in them", "Kernels of your own",
        "Passes, and what is checked around them"}) {
    const size_t found = help.find("\n" + std::string(title), at);
    ASSERT_NE(found, std::string::npos) << title << "\n" << help;
    at = found;
  }
  // What all options of a group share stands once.
  EXPECT_NE(help.find("Kernels of your own [refused with a compiled .so]:"), std::string::npos);
  EXPECT_LT(help.find("Libraries, called by name"), help.find("--link"));
  EXPECT_LT(help.find("--link"), help.find("Back ends, and"));
  EXPECT_EQ(help.find("TEXT ..."), std::string::npos) << "one value each time";
  for (const char* command : {"", "run ", "compile ", "explain ", "check "}) {
    std::istringstream lines(tenon(std::string(command) + "--help").out);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
  }
}

TEST_F(CommandLineTest, FaultsOfTheInputAreStatus1WithACode) {
  expect_error("run none.onnx", 1, "error[TN0002]");
  expect_error("print README.md", 1, "not a kind of model");
  expect_error("print none.relay", 1, "error[TN0002]");
  expect_error(std::string("run ") + kDigits + " --target z80", 1, "target `z80` is not known");
  expect_error(std::string("run ") + kDigits + " --pool sram=1KiB", 2, "it is of target c");
  expect_error(std::string("run ") + kDigits + " -i pixels=x.npy", 1,
               "no input is named `pixels`; the program takes `image`");
  expect_error(std::string("run ") + kDigits + " -i image=examples/digits/test_labels.npy", 1,
               "input `image` is int64 (");
  expect_error("test-onnx " + folder_, 1, "holds no cases");
  expect_error("plan none.csv", 1, "error[TN0002]: cannot read `none.csv`");
  write("empty.onnx", "");
  expect_error("check " + folder_ + "/empty.onnx", 1, "error[TN0501]");
  write("cut.onnx", read(TENON_SOURCE_DIR "/examples/digits/digits.onnx").substr(0, 5000));
  expect_error("check " + folder_ + "/cut.onnx", 1, "error[TN05");
  write("bad.tvmscript", "@I.ir_module\nclass Module:\n    @R.function\n    def main(: pass\n");
  expect_error("check " + folder_ + "/bad.tvmscript", 1, "bad.tvmscript:4:");
  write("fake.so", "not a library");
  expect_error("run " + folder_ + "/fake.so", 1, "error[TN0603]");
}

TEST_F(CommandLineTest, HelpIsEverywhere) {
  for (const char* command : {"", "run ", "compile ", "print ", "check ", "opt ", "test-onnx ",
                              "plan ", "bench ", "explain "}) {
    const Outcome outcome = tenon(std::string(command) + "--help");
    EXPECT_EQ(outcome.status, 0) << command;
    EXPECT_NE(outcome.out.find("Usage: tenon"), std::string::npos) << command;
  }
}

TEST_F(CommandLineTest, CompiledAndInterpretedAgree) {
  const Outcome run = tenon(std::string("run ") + kDigits + " --dim batch=3 --json -o " + folder_);
  ASSERT_EQ(run.status, 0) << run.err;
  const auto compiled = nlohmann::json::parse(run.out);
  EXPECT_EQ(compiled["outputs"][0]["shape"], (std::vector<int64_t>{3, 10}));
  EXPECT_GT(compiled["workspace_bytes"], 0);
  EXPECT_EQ(compiled["operators"], compiled["own_operators"]);
  EXPECT_TRUE(fs::exists(folder_ + "/probabilities.npy"));
  const Outcome slow = tenon(std::string("run ") + kDigits + " --dim batch=3 --json --interpret");
  ASSERT_EQ(slow.status, 0) << slow.err;
  const auto interpreted = nlohmann::json::parse(slow.out);
  for (size_t i = 0; i < 6; ++i)
    EXPECT_NEAR(compiled["outputs"][0]["first"][i].get<double>(),
                interpreted["outputs"][0]["first"][i].get<double>(), 1e-5);
}

TEST_F(CommandLineTest, PassesKeepTheMeaningAndTheText) {
  const Outcome run = tenon(std::string("run ") + kDigits1 + " --validate --check-text");
  EXPECT_EQ(run.status, 0) << run.err;
}

TEST_F(CommandLineTest, LibrariesAreTheSameEveryTimeAndRun) {
  for (const char* name : {"a", "b"}) {
    fs::create_directories(folder_ + "/" + name);
    const Outcome compile =
        tenon(std::string("compile ") + kDigits + " -o " + folder_ + "/" + name + "/digits.so");
    ASSERT_EQ(compile.status, 0) << compile.err;
  }
  for (const char* file : {"/digits.so", "/digits.h", "/digits.json"})
    EXPECT_EQ(read(folder_ + "/a" + file), read(folder_ + "/b" + file)) << file;
  EXPECT_EQ(0, std::system(("gcc -std=c99 -Wall -Wextra -Werror -fsyntax-only -I" TENON_SOURCE_DIR
                            "/src -x c " +
                            folder_ + "/a/digits.h")
                               .c_str()));
  const std::string library = "run " + folder_ + "/a/digits.so";
  const Outcome one = tenon(library + " --threads 1 -o " + folder_ + "/one");
  const Outcome two = tenon(library + " --threads 2 -o " + folder_ + "/two");
  ASSERT_EQ(one.status, 0) << one.err;
  ASSERT_EQ(two.status, 0) << two.err;
  EXPECT_EQ(read(folder_ + "/one/probabilities.npy"), read(folder_ + "/two/probabilities.npy"));
  EXPECT_NE(one.out.find("own code"), std::string::npos);
}

TEST_F(CommandLineTest, ManifestsNameTheModuleByItsContent) {
  const auto hash_of = [&](const std::string& name, const std::string& number) {
    write(name + ".tvmscript",
          "from tenon.script import ir as I, relax as R\n@I.ir_module\nclass Module:\n    "
          "@R.function\n    def main(x: R.Tensor((4,), \"float32\")):\n        return R.add(x, "
          "R.const(" +
              number + ", \"float32\"))\n");
    const std::string file = folder_ + "/" + name;
    const Outcome compile = tenon("compile " + file + ".tvmscript -o " + file + ".so");
    EXPECT_EQ(compile.status, 0) << compile.err;
    return nlohmann::json::parse(read(file + ".json"))["module_hash"].get<std::string>();
  };
  const std::string hash = hash_of("one", "1.5");
  // Of the text of the module: a change of the printer changes it, a host or a run does not.
  EXPECT_EQ(hash.size(), 32U);
  EXPECT_EQ(hash_of("same", "1.5"), hash);
  EXPECT_NE(hash_of("other", "2.5"), hash);
}

TEST_F(CommandLineTest, ModulesAreWrittenAndReadAgain) {
  const std::string file = folder_ + "/digits.tvmscript";
  const Outcome opt = tenon(std::string("opt ") + kDigits1 +
                            " --passes \"FoldConstant,LegalizeOps,FuseOps,FuseTIR\" -o " + file);
  ASSERT_EQ(opt.status, 0) << opt.err;
  EXPECT_EQ(tenon("check " + file).out, file + ": ok\n");
  const Outcome run = tenon("run " + file);
  EXPECT_EQ(run.status, 0) << run.err;
  expect_error("opt " + file + " --passes \"PlanMemory\"", 1, "error[TN0206]");
  expect_error("opt " + file + " --passes \"FuseOps(depth=3)\"", 1, "has no option `depth`");
}

TEST_F(CommandLineTest, BenchGivesTheFieldsOfTheContract) {
  const Outcome bench = tenon(std::string("bench ") + kDigits1 + " --repeat 2 --per-kernel --json");
  ASSERT_EQ(bench.status, 0) << bench.err;
  const auto json = nlohmann::json::parse(bench.out);
  ASSERT_EQ(json.size(), 1U);
  for (const char* field : {"model", "threads", "min_ms", "median_ms", "compile_ms", "load_ms",
                            "rss_mb", "planned_bytes", "bound_bytes", "gflops"})
    EXPECT_TRUE(json[0].contains(field)) << field;
  EXPECT_GT(json[0]["gflops"], 0);
  EXPECT_GT(json[0]["kernels"].size(), 0U);
  EXPECT_GT(json[0]["kernels"][0]["ms"], 0);
}

TEST_F(CommandLineTest, AProgramForAnotherMachineIsNamed) {
  // The first bytes of a shared library of 64 bits, with a processor.
  const auto library = [](char processor) {
    std::string bytes(
        "\x7f"
        "ELF\2\1\1",
        7);
    bytes.resize(64, '\0');
    bytes[16] = 3;
    bytes[18] = processor;
    return bytes;
  };
#if defined(__aarch64__)
  write("other.so", library(62));
  const std::string name = "x86-64";
#else
  write("other.so", library(static_cast<char>(183)));
  const std::string name = "AArch64";
#endif
  expect_error("run " + folder_ + "/other.so", 1, "error[TN0310]");
  expect_error("run " + folder_ + "/other.so", 1,
               "is a program for " + name + "; it runs on such a machine, not on this one");
  expect_error("bench " + folder_ + "/other.so", 1, "is a program for " + name);
}

}  // namespace
