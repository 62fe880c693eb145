// SPDX-License-Identifier: Apache-2.0
// Plugins on the command line: loaded, refused, crashing. What they answer is tested in
// tests/unit/backend_plugin/.
#include "command.h"

namespace {

using tenon::testing_command::Said;

class PluginCommandTest : public tenon::testing_command::CommandTest {
 protected:
  PluginCommandTest() : CommandTest("plugin", "") {}

  /// A plugin named `tiny` with a pass `Same`; `body` is in front of what its entry returns.
  void build(const std::string& body) const {
    std::ofstream(folder_ + "/tiny.c") << R"(#include <stdlib.h>
#include <tenon/backend.h>
static int32_t same(const TenonHost* host, const char* module, TenonAnswer* answer) {
  return host->emit(answer, TENON_MODULE, module, TENON_TEXT);
}
const TenonBackend* tenon_backend(const TenonHost* host) {
  static const TenonPass pass = {sizeof(TenonPass), "Same", "gives what it gets", same};
  static const TenonPass* const passes[] = {&pass};
  static TenonBackend backend = {.size = sizeof(TenonBackend), .abi = TENON_BACKEND_ABI,
                                 .name = "tiny", .version = "0.5", .passes = passes,
                                 .num_passes = 1};
  )" << body << R"(
  return host ? &backend : NULL;
}
)";
    const Said outcome = shell("cc -shared -fPIC -I" TENON_SOURCE_DIR "/include tiny.c -o tiny.so");
    ASSERT_EQ(outcome.status, 0) << outcome.text;
  }
  void expect(const std::string& arguments, int status, const std::string& text) const {
    expect_not_given(arguments, text);
    const Said outcome = shell("timeout 300 " TENON_BINARY " " + arguments);
    EXPECT_EQ(outcome.status, status) << arguments << "\n" << outcome.text;
    EXPECT_NE(outcome.text.find(text), std::string::npos) << arguments << "\n" << outcome.text;
  }
};

constexpr const char* kDigits = TENON_SOURCE_DIR "/examples/digits/digits.onnx";

TEST_F(PluginCommandTest, PassesAreThoseOfTheOthers) {
  build("");
  expect("check --plugin ./tiny.so", 0, "back end `tiny` 0.5 with 0 patterns and 1 passes");
  expect("opt --list-passes --plugin ./tiny.so", 0, "tiny.Same");
  expect(std::string("opt ") + kDigits + " --plugin ./tiny.so --passes tiny.Same", 0,
         "R.nn.conv2d");
  expect(std::string("opt ") + kDigits + " --passes tiny.Same", 2,
         "error[TN0005]: no pass `tiny.Same`");
}

TEST_F(PluginCommandTest, WhatIsNoPluginIsRefused) {
  expect("check --plugin ./none.so", 1, "--plugin ./none.so: there is no such file");
  std::ofstream(folder_ + "/text.so") << "no library";
  expect("check --plugin ./text.so", 1, "error[TN0811]: plugin ./text.so: ");
  ASSERT_EQ(shell("echo 'int x;' > x.c && cc -shared -fPIC x.c -o x.so").status, 0);
  expect("check --plugin ./x.so", 1, "plugin ./x.so: it exports no function `tenon_backend`");
  build("backend.abi += 1;");
  expect("check --plugin ./tiny.so", 1, "it is made for version 1.3");
  expect("check", 2, "FILE is missing");
}

// A back end that takes matches and then makes code for those of `negative` alone.
constexpr const char* kFussy = R"(#include <stdio.h>
#include <string.h>
#include <tenon/backend.h>
static int32_t generate(const TenonHost* host, const TenonMatch* match, TenonAnswer* answer) {
  const char* text = host->text(match);
  if (strstr(text, "relu") || strstr(text, "matmul"))
    return host->refuse(answer, "memory", "it does not fit after all");
  char code[400];
  snprintf(code, sizeof code,
           "#include <stdint.h>\nint32_t %s(const float* x, float* y) {\n"
           "for (int i = 0; i < 64; ++i) y[i] = -x[i];\nreturn 0;\n}\n",
           host->symbol(match));
  return host->emit(answer, TENON_C, code, TENON_TEXT);
}
const TenonBackend* tenon_backend(const TenonHost* host) {
  static TenonBackend backend = {.size = sizeof(TenonBackend), .abi = TENON_BACKEND_ABI,
                                 .name = "fussy", .version = "1", .unit = UNIT,
                                 .generate = generate};
  backend.patterns = "taken = (is_op('relax.nn.relu') | is_op('relax.negative'))(wildcard())\n"
                     "product = is_op('relax.matmul')(wildcard(), wildcard())\n";
  return host ? &backend : NULL;
}
)";

// Two equal units are one function with two calls; both count.
constexpr const char* kFourOperators = R"(
from tenon.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((8, 8), "float32")) -> R.Tensor((8, 8), "float32"):
        with R.dataflow():
            a = R.nn.relu(x)
            b = R.exp(a)
            c = R.matmul(b, b)
            d = R.nn.relu(c)
            e = R.sin(d)
            f = R.negative(e)
            R.output(f)
        return f
)";

TEST_F(PluginCommandTest, WhatABackEndRefusesWhenItsCodeIsMadeIsOwnCodeAndCounted) {
  std::ofstream(folder_ + "/fussy.c") << kFussy;
  std::ofstream(folder_ + "/m.py") << kFourOperators;
  const auto built = [&](const std::string& unit) {
    EXPECT_EQ(shell("cc -shared -fPIC -DUNIT=" + unit +
                    " -I" TENON_SOURCE_DIR "/include fussy.c -o fussy.so")
                  .status,
              0);
  };
  expect("run m.py -o own", 0, "output  float32 (8, 8)");
  for (const char* unit : {"TENON_UNIT_MATCH", "TENON_UNIT_REGION"}) {
    SCOPED_TRACE(unit);
    built(unit);
    expect("run m.py --plugin ./fussy.so -o with", 0,
           "fussy 1 of 6 operators, 0 % of the arithmetic; own code 5; refused: 3 memory");
    expect("run m.py --plugin ./fussy.so --json", 0, "\"share\": 0.0");
    expect("run m.py --plugin ./fussy.so --require-offload 10%", 1,
           "`c`, 100.0 % of the arithmetic: own code (memory): `fussy` made no code for");
    expect("explain m.py a --plugin ./fussy.so", 0,
           "placement    own code (memory): `fussy` made no code for");
    EXPECT_EQ(shell(TENON_BINARY " explain m.py a --plugin ./fussy.so").text.find("placed (fussy"),
              std::string::npos);
    const auto bytes = [&](const std::string& file) {
      std::ifstream in(folder_ + file, std::ios::binary);
      return std::string(std::istreambuf_iterator<char>(in), {});
    };
    ASSERT_FALSE(bytes("/own/output.npy").empty());
    EXPECT_EQ(bytes("/own/output.npy"), bytes("/with/output.npy"));
  }
  // Of one function that is asked for by name there is nothing else to do.
  expect(
      "opt m.py --plugin ./fussy.so --passes 'FuseOpsByPattern(backend=\"fussy\"), "
      "RunCodegen(backend=\"fussy\", function=\"fussy_product\")'",
      1, "error[TN0813]");
}

// What a back end made is all that is needed of it afterwards.
TEST_F(PluginCommandTest, AModuleAfterRunCodegenNeedsNoBackEnd) {
  std::ofstream(folder_ + "/fussy.c") << kFussy;
  std::ofstream(folder_ + "/m.py") << kFourOperators;
  const std::string passes =
      " --plugin ./fussy.so --passes AnnotatePlacement,DispatchPlacement,MergeCompositeFunctions,"
      "RunCodegen";
  expect("run m.py -o own", 0, "output  float32 (8, 8)");
  for (const char* unit : {"TENON_UNIT_MATCH", "TENON_UNIT_REGION"}) {
    SCOPED_TRACE(unit);
    ASSERT_EQ(shell("cc -shared -fPIC -DUNIT=" + std::string(unit) +
                    " -I" TENON_SOURCE_DIR "/include fussy.c -o fussy.so")
                  .status,
              0);
    ASSERT_EQ(shell(TENON_BINARY " opt m.py" + passes + " -o n.py").status, 0);
    ASSERT_EQ(shell("rm fussy.so").status, 0);
    // Its code is the model's: it is linked where the user says so (docs/trust.md).
    expect("run n.py", 1, "error[TN0021]");
    expect("run n.py --allow-code -o with", 0, "output  float32 (8, 8)");
    expect("compile n.py --allow-code -o n.so", 0, "operators");
    expect("run n.so", 0, "output  float32 (8, 8)");
    const auto bytes = [&](const std::string& file) {
      std::ifstream in(folder_ + file, std::ios::binary);
      return std::string(std::istreambuf_iterator<char>(in), {});
    };
    ASSERT_FALSE(bytes("/own/output.npy").empty());
    EXPECT_EQ(bytes("/own/output.npy"), bytes("/with/output.npy"));
  }
  // Nor where it made nothing.
  ASSERT_EQ(shell("sed 's/strstr(text, \"relu\")/1/' fussy.c > no.c && cc -shared -fPIC "
                  "-DUNIT=TENON_UNIT_MATCH -I" TENON_SOURCE_DIR "/include no.c -o no.so")
                .status,
            0);
  ASSERT_EQ(shell(TENON_BINARY " opt m.py --plugin ./no.so --passes "
                               "AnnotatePlacement,DispatchPlacement,RunCodegen -o n.py")
                .status,
            0);
  expect("run n.py", 0, "output  float32 (8, 8)");
  // One that is still needed is missed.
  ASSERT_EQ(
      shell(TENON_BINARY " opt m.py --plugin ./no.so --passes AnnotatePlacement -o n.py").status,
      0);
  expect("run n.py", 1, "no back end `fussy`");
}

// Stores outside of a buffer whose dimension is known only when the program runs.
constexpr const char* kWide = R"(#include <stdio.h>
#include <tenon/backend.h>
static int32_t generate(const TenonHost* host, const TenonMatch* match, TenonAnswer* answer) {
  char text[900];
  snprintf(text, sizeof text,
           "@T.prim_func\ndef %s(x: T.handle, y: T.handle):\n    n = T.int64()\n"
           "    X = T.match_buffer(x, (n, 4), \"float32\")\n"
           "    Y = T.match_buffer(y, (n, 4), \"float32\")\n"
           "    for i in range(4):\n        Y[ROW, i] = X[0, i]\n",
           host->symbol(match));
  return host->emit(answer, TENON_TVMSCRIPT, text, TENON_TEXT);
}
const TenonBackend* tenon_backend(const TenonHost* host) {
  static TenonBackend backend = {.size = sizeof(TenonBackend), .abi = TENON_BACKEND_ABI,
                                 .name = "wide", .flags = TENON_TAKES_SYMBOLIC_SHAPES,
                                 .patterns = "relu = is_op('relax.nn.relu')(wildcard())\n",
                                 .generate = generate};
  return host ? &backend : NULL;
}
)";

TEST_F(PluginCommandTest, TensorIRThatItAnswersIsCheckedForBounds) {
  std::string text = kWide;
  const auto build_for = [&](const std::string& row) {
    std::string source = text;
    source.replace(source.find("ROW"), 3, row);
    std::ofstream(folder_ + "/wide.c") << source;
    ASSERT_EQ(shell("cc -shared -fPIC -I" TENON_SOURCE_DIR "/include wide.c -o wide.so").status, 0);
  };
  const std::string model = R"(
from tenon.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((DIM, 4), "float32")) -> R.Tensor((DIM, 4), "float32"):
        y = R.nn.relu(x)
        return y
)";
  for (const auto& [file, dim] : {std::pair("/one.py", "1"), std::pair("/any.py", "\"n\"")}) {
    std::string made = model;
    for (int i = 0; i < 2; ++i) made.replace(made.find("DIM"), 3, dim);
    std::ofstream(folder_ + file) << made;
  }
  build_for("1");
  expect("run one.py --plugin ./wide.so", 1, "index 1 of dimension 0 of buffer `Y`");
  for (const char* command : {"run any.py --dim n=1", "run any.py --dim n=1 --target c"})
    expect(command + std::string(" --plugin ./wide.so"), 1, "lies outside of its extent 1");
  expect("run any.py --dim n=2 --plugin ./wide.so", 0, "output  float32 (2, 4)");
  // The same after the module was written and read again, without the back end.
  ASSERT_EQ(shell(TENON_BINARY " opt any.py --plugin ./wide.so --passes "
                               "AnnotatePlacement,DispatchPlacement,RunCodegen -o n.py")
                .status,
            0);
  expect("run n.py --dim n=1", 1, "lies outside of its extent 1");
}

// A back end whose function gets the number of rows, and needs a library that linkers name by a
// text.
constexpr const char* kRoots = R"(#include <stdio.h>
#include <tenon/backend.h>
static int32_t generate(const TenonHost* host, const TenonMatch* match, TenonAnswer* answer) {
  char code[500];
  snprintf(code, sizeof code,
           "#include <math.h>\n#include <stdint.h>\n"
           "int32_t %s(const float* x, float* y, int64_t rows) {\n"
           "for (int64_t i = 0; i < rows * 4; ++i) y[i] = cbrtf(x[i]) < 0 ? 0 : x[i];\nreturn 0;\n}\n",
           host->symbol(match));
  if (host->link(answer, "m")) return 1;
  return host->emit(answer, TENON_C, code, TENON_TEXT);
}
const TenonBackend* tenon_backend(const TenonHost* host) {
  static TenonBackend backend = {.size = sizeof(TenonBackend), .abi = TENON_BACKEND_ABI,
                                 .name = "roots", .flags = TENON_TAKES_SYMBOLIC_SHAPES,
                                 .patterns = "relu = is_op('relax.nn.relu')(wildcard())\n",
                                 .generate = generate};
  return host ? &backend : NULL;
}
)";

TEST_F(PluginCommandTest, AFunctionGetsSizesAndTheLibrariesThatItNames) {
  std::ofstream(folder_ + "/roots.c") << kRoots;
  ASSERT_EQ(shell("cc -shared -fPIC -I" TENON_SOURCE_DIR "/include roots.c -o roots.so").status, 0);
  std::ofstream(folder_ + "/m.py") << R"(
from tenon.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", "m", 4), "float32")) -> R.Tensor(("n * m", 4), "float32"):
        n = T.int64()
        m = T.int64()
        with R.dataflow():
            a = R.reshape(x, R.shape([n * m, 4]))
            b = R.nn.relu(a)
            R.output(b)
        return b
)";
  expect("run m.py -o own", 0, "output  float32 (");
  expect("run m.py --plugin ./roots.so -o with", 0, "roots 1 of 2 operators");
  EXPECT_EQ(shell("cmp own/output.npy with/output.npy").status, 0);
  expect("compile m.py --plugin ./roots.so -o m.so", 0, "roots 1 of 2 operators");
  expect("run m.so -o loaded", 0, "output  float32 (");
  EXPECT_EQ(shell("cmp own/output.npy loaded/output.npy").status, 0);
}

// A back end that does what BAD says before it answers about anything.
constexpr const char* kUnruly = R"(#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <tenon/backend.h>
static int32_t check(const TenonHost* host, const TenonMatch* match, TenonAnswer* answer) {
  CHECK
  return 0;
}
static int32_t pack(const TenonHost* host, const TenonMatch* match, int32_t input,
                    TenonAnswer* answer) {
  const TenonTensor* w = host->input(match, input);
  float twice[4];
  for (int i = 0; i < 4; ++i) twice[i] = ((const float*)w->data)[i] * 2;
  return host->emit(answer, TENON_PACKED, twice, sizeof twice);
}
static int64_t scratch(const TenonHost* host, const TenonMatch* match) {
  return host->num_inputs(match) * 64;
}
static int32_t generate(const TenonHost* host, const TenonMatch* match, TenonAnswer* answer) {
  char code[600];
  int32_t count = 0;
  const char* kernel = host->choose(match, 0);
  if (!kernel || !strstr(kernel, "prim_func") || !strstr(host->text(match), "R.add"))
    return host->refuse(answer, "text", "the host does not say what it should");
  GENERATE
  snprintf(code, sizeof code,
           "#include <stdint.h>\nint32_t %s(const float* x, const uint8_t* w, float* y,\n"
           " void* scratch) {\nfor (int i = 0; i < 4; ++i) y[i] = x[i] + ((const float*)w)[i];\n"
           "return scratch ? %d : 1;\n}\n",
           host->symbol(match), (int)count);
  host->log(answer, "made");
  return host->emit(answer, TENON_C, code, TENON_TEXT);
}
const TenonBackend* tenon_backend(const TenonHost* host) {
  static TenonBackend backend = {
      .size = sizeof(TenonBackend), .abi = TENON_BACKEND_ABI, .name = "unruly",
      .patterns = "add = is_op('relax.add')(wildcard(), is_const())\n", .check = check,
      .scratch = scratch, .pack = pack, .generate = generate};
  LOAD
  return host ? &backend : NULL;
}
)";
constexpr const char* kAddConstant = R"(
from tenon.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        y = R.add(x, R.const([1.0, 2.0, 3.0, 4.0], "float32"))
        return y
)";

TEST_F(PluginCommandTest, WhateverAPluginDoesIsReportedByItsName) {
  std::ofstream(folder_ + "/unruly.c") << kUnruly;
  std::ofstream(folder_ + "/m.py") << kAddConstant;
  const auto built = [&](const std::string& check, const std::string& generate,
                         const std::string& load) {
    const Said said =
        shell("cc -shared -fPIC -w '-DCHECK=" + check + "' '-DGENERATE=" + generate +
              "' '-DLOAD=" + load + "' -I" TENON_SOURCE_DIR "/include unruly.c -o unruly.so");
    ASSERT_EQ(said.status, 0) << said.text;
  };
  built("", "", "");
  // Its answers are the same in both processes: data, text and choice came there and back.
  expect("run m.py --plugin ./unruly.so -o apart", 0, "unruly 1 of 1 operators");
  expect("run m.py --plugin ./unruly.so --in-process -o here", 0, "unruly 1 of 1 operators");
  EXPECT_EQ(shell("cmp apart/output.npy here/output.npy").status, 0);
  const std::string run = "run m.py --plugin ./unruly.so";
  built("exit(0);", "", "");
  expect(run, 1,
         "error[TN0815]: callback `check` of back end `unruly` (./unruly.so) ended the process "
         "that it runs in, with status 0");
  built("", "_exit(7);", "");
  expect(run, 1,
         "error[TN0815]: callback `generate` of back end `unruly` (./unruly.so) ended the process "
         "that it runs in, with status 7");
  built("", "", "exit(0);");
  expect(run, 1, "error[TN0815]: plugin ./unruly.so, when it was loaded, ended the process");
  built("char* p = malloc(24); memset(p - 16, 65, 4096); free(p);", "", "");
  expect(run, 1, "error[TN0812]: callback `check` of back end `unruly` (./unruly.so) crashed");
  built("for (;;) {}", "", "");
  expect(run + " --plugin-timeout 1", 1,
         "error[TN0814]: callback `check` of back end `unruly` (./unruly.so) did not come to an "
         "end in 1 s");
  built("", "", "for (;;) pause();");
  expect(run + " --plugin-timeout 1", 1, "error[TN0814]: plugin ./unruly.so");
  // Bytes of its own on the socket.
  built("write(3, \"XXXXXXXXXXXXXXXXXXXXXXXX\", 24);", "", "");
  expect(run, 1, "error[TN0801]: callback `check` of back end `unruly`");
  built("char big[13] = {9, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0}; write(3, big, 12); close(3);",
        "", "");
  expect(run, 1, "callback `check` of back end `unruly`");
}

TEST_F(PluginCommandTest, ACrashIsThePluginsOwn) {
  build("*(volatile int*)8 = 1;");
  expect("check --plugin ./tiny.so", 1,
         "error[TN0812]: plugin ./tiny.so, when it was loaded, crashed");
  build("abort();");
  expect(std::string("print ") + kDigits + " --plugin ./tiny.so", 1,
         "error[TN0812]: plugin ./tiny.so, when it was loaded, crashed: it called abort");
  expect(std::string("print ") + kDigits + " --plugin ./tiny.so --in-process", 1,
         "error[TN0812]: plugin ./tiny.so crashed: it called abort");
}

}  // namespace
