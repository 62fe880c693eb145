// SPDX-License-Identifier: Apache-2.0
// Pipelines as text on the command line, for models of every kind.
#include <nlohmann/json.hpp>

#include "command.h"

namespace {

using tenon::testing_command::CommandTest;
using tenon::testing_command::Outcome;
using tenon::testing_command::read;
namespace fs = std::filesystem;

// Commands run in the folder of the files that are written here.
class PipelineTest : public CommandTest {
 protected:
  PipelineTest() : CommandTest("pipeline", "") {}
  void SetUp() override {
    CommandTest::SetUp();
    write("kernel.py", R"(
@I.ir_module
class Module:
    @T.prim_func
    def twice(x: T.Buffer((8,), "float32"), y: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("twice"):
                v = T.axis.spatial(8, i)
                y[v] = x[v] * T.float32(2)
)");
    write("graph.py", R"(
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 2), "float32")) -> R.Tensor(("n", 2), "float32"):
        n = T.int64()
        R.func_attr({"num_input": 1})
        with R.dataflow():
            e = R.exp(w)
            y: R.Tensor((n, 2), "float32") = R.matmul(x, e)
            R.output(y)
        return y
)");
    write("add.relay", "fn (%x: Tensor[(2, 3), float32]) { add(%x, %x) }\n");
  }
};

constexpr const char* kDigits = TENON_SOURCE_DIR "/examples/digits/digits.onnx";

TEST_F(PipelineTest, ThePrintedPipelineGivesEqualArtefacts) {
  const Outcome printed = tenon("opt --print-pipeline");
  ASSERT_EQ(printed.status, 0) << printed.err;
  write("standard.pipeline", printed.out);
  for (const std::string model : {kDigits, "kernel.py", "graph.py", "add.relay"}) {
    SCOPED_TRACE(model);
    ASSERT_EQ(tenon("compile " + model + " --name m -o a/m.so").status, 1);  // no such folder
    fs::create_directories(folder_ + "/a");
    fs::create_directories(folder_ + "/b");
    const Outcome one = tenon("compile " + model + " --name m -o a/m.so");
    ASSERT_EQ(one.status, 0) << one.err;
    const Outcome two =
        tenon("compile " + model + " --name m -o b/m.so --pipeline standard.pipeline");
    ASSERT_EQ(two.status, 0) << two.err;
    EXPECT_EQ(read(folder_ + "/a/m.so"), read(folder_ + "/b/m.so"));
    EXPECT_EQ(read(folder_ + "/a/m.json"), read(folder_ + "/b/m.json"));
    EXPECT_GT(fs::file_size(folder_ + "/a/m.so"), 1000U);
    fs::remove_all(folder_ + "/a");
  }
}

TEST_F(PipelineTest, PassesRunInFrontOfThePipeline) {
  const std::string bound = " --passes 'BindSymbolicVars(binding_map={\"n\": 5})'";
  const auto json = nlohmann::json::parse(tenon("run graph.py --json" + bound).out);
  EXPECT_EQ(json["outputs"][0]["shape"], (std::vector<int>{5, 2}));
  EXPECT_TRUE(json["planned_bytes"].is_number());
  const Outcome compiled = tenon("compile graph.py -o bound" + bound);
  ASSERT_EQ(compiled.status, 0) << compiled.err;
  const auto manifest = nlohmann::json::parse(read(folder_ + "/bound/graph.json"));
  EXPECT_EQ(manifest["passes"][0], "BindSymbolicVars(binding_map={\"n\": 5})");
  EXPECT_EQ(manifest["inputs"][0]["type"], "float32 (5, 4)");
}

TEST_F(PipelineTest, OptTakesModelsOfEveryKind) {
  for (const std::string model : {kDigits, "graph.py", "add.relay"}) {
    const Outcome outcome = tenon("opt " + model + " --passes 'LegalizeOps, FuseOps'");
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("R.call_tir("), std::string::npos) << outcome.out;
  }
  write("short.pipeline", "# two passes\nLegalizeOps  # every operator\n\nFuseOps,\n");
  EXPECT_EQ(tenon("opt graph.py --pipeline short.pipeline").out,
            tenon("opt graph.py --passes LegalizeOps,FuseOps").out);
  EXPECT_EQ(tenon("print graph.py --passes LegalizeOps,FuseOps").out,
            tenon("print graph.py --passes LegalizeOps --after FuseOps").out);
}

TEST_F(PipelineTest, OptionsMaySpanLines) {
  write("p", "BindSymbolicVars(\n    binding_map={\"n\": 3},  # rows\n    func_name='main')\n");
  const Outcome outcome = tenon("opt graph.py --pipeline p");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("R.Tensor((3, 2), dtype=\"float32\")"), std::string::npos);
}

TEST_F(PipelineTest, FaultsOfPipelinesHaveTheirPlace) {
  write("unknown", "# mine\nInlineFunctions\n  LegaliseOps\n");
  expect_error("run graph.py --pipeline unknown", 1,
               "unknown:3:3: error[TN0005]: no pass `LegaliseOps`; did you mean `LegalizeOps`?");
  write("syntax", "LegalizeOps FuseOps\n");
  expect_error("run graph.py --pipeline syntax", 1,
               "syntax:1:13: error[TN0401]: `FuseOps`; expected `,` or the end of the line");
  write("option", "LegalizeOps\nPlanMemory(work_limit=1,\n           work_limit=2)\n");
  expect_error("run graph.py --pipeline option", 1, "option:3:12: error[TN0004]");
  write("unknown_option", "LegalizeOps(speed=1)\n");
  expect_error("run graph.py --pipeline unknown_option", 1,
               "unknown_option:1:1: error[TN0004]: `LegalizeOps` has no option `speed`");
  write("form", "LegalizeOps\nFuseOps\n\nFlattenBuffer\n");
  expect_error("run graph.py --pipeline form", 1,
               "form:4:1: error[TN0206]: `FlattenBuffer` was given a module in legalised form; "
               "expected lowered");
  write("short", "LegalizeOps\nFuseOps\nFuseTIR\n");
  expect_error("run graph.py --pipeline short", 1,
               "short:3:1: error[TN0206]: the pipeline ends with a module in legalised form; "
               "expected lowered");
  write("empty", "# nothing\n");
  expect_error("run graph.py --pipeline empty", 1, "the pipeline ends with a module in graph form");
  expect_error("run graph.py --pipeline nowhere", 1, "error[TN0002]");
  expect_error("run graph.py --passes 'FuseOps,,'", 2, "--passes:1:9: error[TN0401]");
  expect_error("run graph.py --passes 'LegalizeOps(a=[1, (2)'", 2, "error[TN0401]");
}

TEST_F(PipelineTest, ParametersAreBoundFromFiles) {
  // float32 (4, 2) of ones, as NumPy writes it.
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 2), }";
  header.resize(117, ' ');
  header += '\n';
  std::string npy = std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0';
  npy += header;
  const float one = 1;
  for (int i = 0; i < 8; ++i) npy.append(reinterpret_cast<const char*>(&one), sizeof(one));
  write("w.npy", npy);
  const Outcome outcome =
      tenon("run graph.py --json --dim n=1 --passes 'BindParams(params={\"w\": \"w.npy\"})'");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(nlohmann::json::parse(outcome.out)["inputs"].size(), 1U);
  expect_error("run graph.py --passes 'BindParams(params={\"v\": \"w.npy\"})'", 1,
               "function `main` has no parameter `v`");
}

TEST_F(PipelineTest, LiftedWeightsGiveTheSameResult) {
  ASSERT_EQ(tenon("opt graph.py --passes LiftTransformParams --validate -o lifted.py").status, 0);
  const Outcome outcome = tenon("run lifted.py --json --dim n=2");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["inputs"].size(), 2U);
  EXPECT_EQ(json["outputs"][0]["shape"], (std::vector<int>{2, 2}));

  // Both parts one after the other are the function that they were made of.
  std::string text = read(folder_ + "/lifted.py");
  const size_t main = text.find("def main(");
  ASSERT_NE(main, std::string::npos) << text;
  text.replace(main, 9, "def rest(");
  text += R"(
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 2), "float32")) -> R.Tensor(("n", 2), "float32"):
        n = T.int64()
        cls = Module
        t: R.Tuple(R.Tensor((4, 2), "float32")) = cls.main_transform_params((w,))
        e: R.Tensor((4, 2), "float32") = t[0]
        y: R.Tensor((n, 2), "float32") = cls.rest(x, e)
        return y
)";
  write("joined.py", text);
  const Outcome whole = tenon("run graph.py --dim n=2 --seed 3 -o whole");
  const Outcome joined = tenon("run joined.py --dim n=2 --seed 3 -o joined");
  ASSERT_EQ(whole.status, 0) << whole.err;
  ASSERT_EQ(joined.status, 0) << joined.err;
  const std::string expected = read(folder_ + "/whole/output.npy");
  ASSERT_GT(expected.size(), 128U);
  EXPECT_EQ(read(folder_ + "/joined/output.npy"), expected);
}

TEST_F(PipelineTest, KernelsEnterWhereTheGraphIsLowered) {
  for (const char* pass : {"DefaultSchedule", "LowerOpaqueBlock", "VectorizeLoop"}) {
    const Outcome printed = tenon("print kernel.py --after " + std::string(pass));
    EXPECT_EQ(printed.status, 0) << printed.err;
    EXPECT_NE(printed.out.find("def twice("), std::string::npos) << printed.out;
  }
  expect_error("print kernel.py --after FuseOps", 2,
               "the pipeline does not contain pass `FuseOps`");
}

TEST_F(PipelineTest, OwnPipelinesCheckAccesses) {
  write("take.py", R"(
@I.ir_module
class Module:
    @T.prim_func
    def take(x: T.Buffer((8,), "float32"), at: T.Buffer((4,), "int32"), y: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("take"):
                v = T.axis.spatial(4, i)
                y[v] = x[at[v]]
)");
  write("wrong.py",
        "import struct\n"
        "head = \"{'descr': '<i4', 'fortran_order': False, 'shape': (4,), }\"\n"
        "head += ' ' * (128 - 11 - len(head)) + chr(10)\n"
        "open('wrong.npy', 'wb').write(b'\\x93NUMPY\\x01\\x00' + struct.pack('<H', len(head)) + "
        "head.encode() + struct.pack('<4i', 0, 1, 2, 100))\n");
  ASSERT_EQ(shell("cd " + folder_ + " && python3 wrong.py").status, 0);
  std::string passes = tenon("opt --print-pipeline").out;
  const size_t at = passes.find("InstrumentBoundCheckers");
  ASSERT_NE(at, std::string::npos);
  passes.insert(at, "# ");
  write("own.txt", passes);
  write("late.txt", passes.substr(passes.find("DefaultSchedule")));
  for (const char* target : {"native", "c"})
    for (const char* pipeline : {"own.txt", "late.txt"})
      expect_error(
          "run take.py -i at=wrong.npy --target " + std::string(target) + " --pipeline " + pipeline,
          1, "index 100 of dimension 0 of buffer `x`");
  EXPECT_EQ(tenon("compile take.py -o unchecked.so --unchecked --pipeline own.txt").status, 0);
}

}  // namespace
