// SPDX-License-Identifier: Apache-2.0
// Compiled programs as their users meet them: what a program says of itself, and the C program that
// shows how it is called. (examples/calling is the same with what is installed.)
#include <nlohmann/json.hpp>

#include "command.h"

namespace {

using tenon::testing_command::CommandTest;
using tenon::testing_command::Outcome;
using tenon::testing_command::Said;

constexpr const char* kDigits = "examples/digits/digits.onnx";
constexpr const char* kStrict = " -std=c99 -pedantic -Wall -Wextra -Werror -O1 ";

// Inputs and outputs of many types, one without dimensions, names that C or the program has itself.
constexpr const char* kTypes = R"py(
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 12), "float32"), count: R.Tensor((3,), "int64"), x_shape: R.Tensor((2,), "bool"), k: R.Tensor((), "uint8")) -> R.Tuple(R.Tensor(("n", 12), "float16"), R.Tensor((3,), "int64"), R.Tensor((2,), "bool"), R.Tensor((), "uint8")):
        n = T.int64()
        with R.dataflow():
            a: R.Tensor((n, 12), "float16") = R.astype(R.exp(x), dtype="float16")
            b: R.Tensor((3,), "int64") = R.add(count, count)
            c: R.Tensor((2,), "bool") = R.logical_not(x_shape)
            d: R.Tensor((), "uint8") = R.add(k, R.const(3, "uint8"))
            R.output(a, b, c, d)
        return (a, b, c, d)
)py";

class CallingTest : public CommandTest {
 protected:
  CallingTest() : CommandTest("calling") {}

  void compile(const std::string& arguments) const {
    const Outcome outcome = tenon("compile " + arguments);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
  }
  // A program of the folder, built with what is installed, or was built.
  void build(const std::string& source, const std::string& more) const {
    const Said said = shell("cc" + std::string(kStrict) + "-I" TENON_SOURCE_DIR "/src -o " +
                            folder_ + "/program " + folder_ + "/" + source + " " + more);
    ASSERT_EQ(said.status, 0) << said.text;
    EXPECT_EQ(said.text, "");
  }
  static std::string runtime() {
    return "-L" TENON_LIBRARY_DIR " -ltenon -Wl,-rpath," TENON_LIBRARY_DIR;
  }
};

TEST_F(CallingTest, ProgramsTellTheirInterface) {
  const std::string program = folder_ + "/digits.so";
  compile(std::string(kDigits) + " -o " + program);
  const std::string text = tenon("show " + program).out;
  for (const char* line :
       {"program    digits; interface 1.",
        "\ntarget     llvm -mcpu=", "\ninputs\n  image  float32 (batch, 1, 8, 8)\n",
        "\noutputs\n  probabilities  float32 (batch, 10)\n",
        "\ndimensions\n  batch  dimension 0 of input `image`\n",
        "\nmemory     workspace as the dimensions are (--dim NAME=N tells); constants ",
        " bytes; addresses are multiples of 64\n", "\nlibraries  "})
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;

  // The memory is what a run of that size takes.
  const auto shown = nlohmann::json::parse(tenon("show --json --dim batch=7 " + program).out);
  const auto ran = nlohmann::json::parse(tenon("run --json --dim batch=7 " + program).out);
  EXPECT_EQ(shown["workspace_bytes"], ran["workspace_bytes"]);
  EXPECT_EQ(shown["constant_bytes"], ran["constant_bytes"]);
  EXPECT_EQ(shown["where"]["output_shapes"], nlohmann::json::parse("[[7, 10]]"));
  EXPECT_EQ(shown["target"], ran["target"]);
  EXPECT_EQ(shown["inputs"], nlohmann::json::parse(R"([{"name": "image", "dtype": "float32",
                                                       "shape": ["batch", 1, 8, 8]}])"));
  EXPECT_EQ(shown["dimensions"][0]["input"], "image");
  EXPECT_EQ(shown["manifest"]["name"], "digits");
  expect_error("show --dim bath=7 " + program, 2, "did you mean `batch`?");

  // Where it is asked for beside a command's own help.
  const Outcome help = tenon("run " + program + " --help");
  EXPECT_EQ(help.status, 0);
  EXPECT_TRUE(help.out.find("Usage: tenon run") < help.out.find(text)) << help.out;
  EXPECT_EQ(tenon("run --help").out.find("program    "), std::string::npos);
  EXPECT_EQ(tenon("run none.so --help").status, 1);

  // A model has an interface, and no memory yet.
  const Outcome model = tenon(std::string("show ") + kDigits);
  EXPECT_EQ(model.out,
            "inputs\n  image  float32 (batch, 1, 8, 8)\n"
            "outputs\n  probabilities  float32 (batch, 10)\n");
  expect_error(std::string("show --dim batch=4 ") + kDigits, 2, "error[TN0011]");
  write("fake.so", "not a library");
  expect_error("show " + folder_ + "/fake.so", 1, "error[TN0603]");
}

// It is not loaded where they are missing, but it says which they are.
TEST_F(CallingTest, ProgramsTellWhatMustBeRegistered) {
  write("packed.py",
        "@I.ir_module\nclass Module:\n    @R.function\n"
        "    def main(x: R.Tensor((4,), \"float32\")) -> R.Tensor((4,), \"float32\"):\n"
        "        y: R.Tensor((4,), \"float32\") = R.call_packed(\"my.own\", x, "
        "sinfo_args=R.Tensor((4,), \"float32\"))\n        return y\n");
  const Outcome made =
      tenon("compile " + folder_ + "/packed.py --allow-code -o " + folder_ + "/p.so");
  ASSERT_EQ(made.status, 0) << made.err;
  const Outcome shown = tenon("show " + folder_ + "/p.so");
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_NE(shown.out.find("to be registered before it is loaded: my.own\n"), std::string::npos)
      << shown.out;
  const auto json = nlohmann::json::parse(tenon("show --json " + folder_ + "/p.so").out);
  EXPECT_EQ(json["registered"], nlohmann::json::parse("[\"my.own\"]"));
}

TEST_F(CallingTest, ExampleOfASharedLibraryRuns) {
#ifdef TENON_SANITIZE
  GTEST_SKIP() << "a program that links a runtime with sanitizers needs theirs";
#endif
  compile(std::string(kDigits) + " --emit c-example -o " + folder_ + "/digits.so");
  build("digits_example.c", runtime());
  const Said said = shell("cd " + folder_ + " && ./program ./digits.so 3");
  EXPECT_EQ(said.status, 0) << said.text;
  EXPECT_NE(said.text.find("\nprobabilities: float32 (3, 10)\n 0."), std::string::npos)
      << said.text;
  const Said wrong = shell(folder_ + "/program " + folder_ + "/digits.h");
  EXPECT_EQ(wrong.status, 1);
  EXPECT_TRUE(wrong.text.starts_with("cannot load `")) << wrong.text;

  write("types.py", kTypes);
  compile(folder_ + "/types.py --emit so,c-example -o " + folder_ + "/types.so");
  build("types_example.c", runtime());
  const Said types = shell("cd " + folder_ + " && ./program ./types.so 2");
  EXPECT_EQ(types.status, 0) << types.text;
  for (const char* line : {": float16 (2, 12)\n 0x", ": int64 (3)\n 0 2 0\n", ": bool (2)\n 1 0\n",
                           ": uint8 ()\n 3\n"})
    EXPECT_NE(types.text.find(line), std::string::npos) << line << types.text;
}

// The numbers of both are the same: that of C calls no runtime.
TEST_F(CallingTest, ExampleOfCRuns) {
  write("types.py", kTypes);
  compile(folder_ + "/types.py --emit c,c-example --target c --name types -o " + folder_);
  build("types_example.c", folder_ + "/types.c -lm");
  const Said types = shell(folder_ + "/program 2");
  EXPECT_EQ(types.status, 0) << types.text;
  for (const char* line : {": float16 (2, 12)\n 0x", ": int64 (3)\n 0 2 0\n", ": bool (2)\n 1 0\n",
                           ": uint8 ()\n 3\n"})
    EXPECT_NE(types.text.find(line), std::string::npos) << line << types.text;

  // Pools, and constants as a file.
  compile(
      "examples/digits/digits_b1.onnx --emit c,c-example --target c --name digits --constants "
      "--pool sram=2KiB --pool dram -o " +
      folder_ + "/pools");
  const Said made = shell("cd " + folder_ + "/pools && cc" + kStrict +
                          "digits_example.c digits.c -lm -o program && ./program");
  EXPECT_EQ(made.status, 0) << made.text;
  EXPECT_TRUE(made.text.starts_with("probabilities: float32 (1, 10)\n 0.")) << made.text;
}

// DLPack's header is used where it is found, and not needed: the layouts are the same.
TEST_F(CallingTest, HeadersNeedNoOthers) {
  write(
      "layout.c",
      "#include <stddef.h>\n#include <stdio.h>\n#include \"tenon/runtime/tenon_runtime.h\"\n"
      "#define AT(member) (int)offsetof(DLTensor, member)\n"
      "int main(void) {\n"
      "  printf(\"%d %d %d %d %d %d %d %d %d %d\\n\", (int)sizeof(DLTensor), AT(device), AT(ndim), "
      "AT(dtype), AT(shape), AT(strides), AT(byte_offset), (int)sizeof(DLManagedTensor), "
      "(int)kDLCPU, (int)kDLFloat);\n  return 0;\n}\n");
  write("layout.cpp", "#include \"layout.c\"\n");
  for (const char* compiler : {"cc -std=c99", "c++ -std=c++11"})
    for (const char* own : {"", " -DTENON_OWN_DLTENSOR"}) {
      const std::string source = compiler[1] == 'c' ? "layout.c" : "layout.cpp";
      const Said said =
          shell("cd " + folder_ + " && " + compiler + " -pedantic -Wall -Wextra -Werror" + own +
                " -I" TENON_SOURCE_DIR "/src " + source + " -o layout && ./layout");
      EXPECT_EQ(said.text, "48 8 16 20 24 32 40 64 1 2\n") << compiler << own;
    }
}

}  // namespace
