// SPDX-License-Identifier: Apache-2.0
// Commands whose options and files do not belong together.
#include <cstring>
#include <filesystem>

#include "cases.h"

namespace tenon::bad_input {

namespace {

using File = std::pair<std::string, std::string>;

File model(const std::string& shape, const std::string& type = "float32") {
  return {"m.tvmscript", "@R.function\ndef main(x: R.Tensor(" + shape + ", \"" + type +
                             "\")):\n    y = R.add(x, x)\n    return y\n"};
}

const File kModel = model("(2, 3)");

std::string npy(const std::string& shape, size_t bytes) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }";
  header.resize(400, ' ');
  header.back() = '\n';
  const auto length = static_cast<uint16_t>(header.size());
  std::string out("\x93NUMPY\1\0", 8);
  out.append(reinterpret_cast<const char*>(&length), 2);
  return out + header + std::string(bytes, '\0');
}

// TVMScript of `main` that copies, with `head` among its parameters and `attrs` before its loop.
File copy(const std::string& head, const std::string& attrs) {
  return {"m.tvmscript", "@T.prim_func\ndef main(x: T.Buffer((8,), \"float32\")" + head +
                             ", y: T.Buffer((8,), \"float32\")):\n" + attrs +
                             "    for i in range(8):\n        y[i] = x[i]\n"};
}

std::string declaration(const std::string& name) {
  return "@R.function\ndef " + name +
         "(x: R.Tensor((\"n\",), \"float32\")):\n    R.func_attr({\"op\": "
         "\"com.example::Mine\"})\n    y = R.exp(x)\n    return y\n";
}

// Patterns of a back end `toy`.
const File kToy = {
    "toy.py",
    "@R.function\ndef add(x: R.Tensor, y: R.Tensor):\n    R.func_attr({\"Composite\": "
    "\"toy.add\"})\n    z = R.add(x, y)\n    return z\n"};
const File kSignatures = {"s.py",
                          "@T.extern_func\ndef absolute(x: T.Buffer((2, 3), \"float32\"), y: "
                          "T.Buffer((2, 3), \"float32\")):\n    T.func_attr({\"effects\": [\"in\", "
                          "\"out\"]})\n"};

std::vector<Case> options() {
  return {
      {"KernelsOfAnotherKind",
       {"run", "m.tvmscript", "--kernels", "k.onnx"},
       {kModel},
       2,
       "error: --kernels k.onnx: expected TVMScript, .py or .tvmscript"},
      {"OperatorDeclaredTwice",
       {"run", "m.tvmscript", "--kernels", "k.py"},
       {kModel, {"k.py", declaration("mine") + "\n" + declaration("yours")}},
       1,
       "k.py:8:5: error[TN0202]: operator `com.example::Mine` is declared twice"},
      {"CallByNameOfABackEnd",
       {"run", "m.tvmscript", "--call-by-name", "dnnl", "--composite", "toy.py"},
       {kModel, kToy},
       2,
       "error: --call-by-name dnnl: back end `dnnl` makes code of its own; expected --libs dnnl"},
      {"CompositeBeforeNothing",
       {"opt", "m.tvmscript", "--call-by-name", "toy", "--composite", "toy.py",
        "--composite-before", "Nothing"},
       {kModel, kToy},
       2,
       "error: --composite-before Nothing: no pipeline runs here; expected --pipeline with it"},
      {"CompositeBeforeWithoutAPipeline",
       {"opt", "m.tvmscript", "--call-by-name", "toy", "--composite", "toy.py",
        "--composite-before", "FuseOps", "--passes", "FuseOps"},
       {kModel, kToy},
       2,
       "error: --composite-before FuseOps: no pipeline runs here; expected --pipeline with it"},
      {"LibraryThatIsNone",
       {"run", "m.tvmscript", "--libs", "nothing"},
       {kModel},
       2,
       "error: --libs nothing: this build has no back end `nothing`; expected of: dnnl, blas, "
       "none"},
      {"OptionOfABackEndWithout",
       {"run", "m.tvmscript", "--backend-option", "dnnl.a=b"},
       {kModel},
       2,
       "error: --backend-option dnnl.a=b: back end `dnnl` has no options; those of --plugin have"},
      {"CheckOfNothing", {"check"}, {}, 2, "error: FILE is missing; or give --plugin"},
      {"SeedWithoutRandomInputs",
       {"run", "m.tvmscript", "-i", "x=x.npy", "--seed", "4"},
       {kModel, {"x.npy", npy("(2, 3)", 24)}},
       0,
       "warning[TN0013]: --seed 4: no input is random"},
      {"LinkOfWhatIsNotCalled",
       {"run", "m.tvmscript", "--link", "libm.so.6"},
       {kModel},
       0,
       "warning[TN0013]: --link libm.so.6: the program calls no function of it"},
      {"SignatureThatIsNotDeclared",
       {"run", "m.tvmscript", "--call-by-name", "toy", "--composite", "toy.py", "--signatures",
        "s.py", "--link", "toy.c"},
       {kModel,
        kToy,
        kSignatures,
        {"toy.c", "void add(const float* x, const float* y, float* z) { z[0] = x[0] + y[0]; }\n"}},
       0,
       "warning[TN0013]: `add` is called as `void add(const float* x, const float* y, float* "
       "output)`, which follows from its inputs and outputs: --signatures declares no `add`"},
      {"CompositeBeforeNoPassOfC",
       {"compile", "m.tvmscript", "--target", "c", "--emit", "c", "-o", "out", "--call-by-name",
        "toy", "--composite", "toy.py", "--composite-before", "Nothing"},
       {kModel, kToy},
       2,
       "error: --composite-before Nothing: the pipeline does not contain this pass; `tenon passes` "
       "lists the pipeline"},
      {"CopiesThatAreNoFlag",
       {"opt", "m.tvmscript", "--passes", "LegalizeOps,SplitCallTIRByPattern(copy_layouts=3)"},
       {kModel},
       1,
       "--passes:1:13: error[TN0004]: option `copy_layouts` of `SplitCallTIRByPattern` is 3; "
       "expected True or False"},
      {"SplitForNobody",
       {"opt", "m.tvmscript", "--passes", "LegalizeOps,SplitCallTIRByPattern(backend=\"nobody\")"},
       {kModel},
       1,
       "--passes:1:13: error[TN0004]: option `backend` of `SplitCallTIRByPattern` is \"nobody\"; "
       "expected the name of a back end"},
      {"RewriterThatIsNone",
       {"opt", "m.tvmscript", "--passes", "RewritePatterns(file=\"rules.py\")"},
       {kModel, {"rules.py", "x = wildcard()\n"}},
       1,
       "rules.py:1:1: error[TN0803]: no rewriter in this file; expected a class under "
       "`@R.rewriter` with functions `pattern` and `replacement`"},
      {"OptionOfBrokenHex",
       {"opt", "m.tvmscript", "--passes", "BindParams(func_name=\"\\xq\")"},
       {kModel},
       2,
       "--passes:1:22: error[TN0402]: `\\x` needs 2 hex digits"},
      {"DimOfAnotherFile",
       {"run", "m.tvmscript", "-i", "x=x.npy", "--dim", "n=4"},
       {model("(\"n\", 3)"), {"x.npy", npy("(5, 3)", 60)}},
       2,
       "error: --dim n=4: it is 5 in the file of input `x`"},
      {"NoneOfTheCasesIsThere",
       {"test-onnx", "cases"},
       {{"cases", "x"}},
       1,
       "error[TN0002]: `cases` holds no cases; expected folders with model.onnx and "
       "test_data_set_*, or NAME.onnx with NAME_output_0.pb"},
  };
}

std::vector<Case> files() {
  return {
      {"ScriptIsAFolder",
       {"check", "m.tvmscript"},
       {},
       1,
       "error[TN0002]: cannot read `m.tvmscript`: it is a directory",
       [] { std::filesystem::create_directory("m.tvmscript"); }},
      {"ProblemIsAFolder",
       {"plan", "p.csv"},
       {},
       1,
       "error[TN0002]: cannot read `p.csv`: it is a directory",
       [] { std::filesystem::create_directory("p.csv"); }},
      {"ProgramInsteadOfAModule",
       {"print", "m.so"},
       {{"m.so",
         "\x7f"
         "ELF"}},
       1,
       "error[TN0001]: m.so: a compiled program holds no module; expected .onnx, .py, .tvmscript "
       "or .relay"},
      {"NpyOfManyDimensions",
       {"run", "m.tvmscript", "-i", "x=x.npy"},
       {kModel,
        {"x.npy", npy(
                      "(" +
                          [] {
                            std::string ones;
                            for (int i = 0; i < 70; ++i) ones += "1, ";
                            return ones;
                          }() +
                          ")",
                      4)}},
       1,
       "error[TN0504]: x.npy: the header of the .npy file has more than 64 dimensions"},
      {"InputOfUnknownRank",
       {"run", "m.tvmscript", "--interpret"},
       {{"m.tvmscript",
         "@R.function\ndef main(x: R.Tensor(dtype=\"float32\")):\n    y = R.exp(x)\n    return "
         "y\n"}},
       1,
       "m.tvmscript:2:10: error[TN0001]: `x` of `main` has type R.Tensor(dtype=\"float32\"); "
       "expected a tensor of known rank and type"},
      {"ScalarOfMain",
       {"run", "m.tvmscript"},
       {copy(", n: T.int64", "    T.func_attr({\"tenon.num_inputs\": 1})\n")},
       1,
       "m.tvmscript:2:5: error[TN0001]: parameter `n` of `main` is no buffer"},
      {"EntryWithoutInputs",
       {"run", "m.tvmscript"},
       {copy("", "    T.func_attr({\"tenon.entry\": True})\n")},
       1,
       "m.tvmscript:2:5: error[TN0206]: PrimFunc `main` does not say how many inputs it has; "
       "expected attribute `tenon.num_inputs`"},
      {"BufferOfUnknownSizeInAPool",
       {"compile", "m.tvmscript", "--target", "c", "--emit", "c", "-o", "out", "--pool", "a=1KiB"},
       {{"m.tvmscript",
         "@R.function\ndef main(x: R.Tensor((\"n\", 3), \"float32\")):\n    y = R.exp(x)\n    z = "
         "R.matmul(y, R.permute_dims(y))\n    return z\n"}},
       1,
       "m.tvmscript:3:9: error[TN0702]: buffer `lv` has n * 3 * 4 bytes, which is known only at "
       "run time, and pool `a` has 1024; give a last pool without a size"},
      {"WrongResultThatIsAnError",
       {"reduce", "m.tvmscript", "--wrong", "-o", "made"},
       {{"m.tvmscript",
         "@R.function\ndef main(x: R.Tensor((2,), \"float32\")):\n    y = R.nothing(x)\n    return "
         "y\n"}},
       1,
       "error[TN0601]: `tenon run m.tvmscript --compare` ends with status 1, error[TN0106]: there "
       "is no operator `...`, not with a wrong result; expected error[TN0903]"},
      {"FailureThatSaysSomethingElse",
       {"reduce", "m.tvmscript", "--fails", "echo no; false", "--message", "never", "-o", "made"},
       {kModel},
       1,
       "error[TN0601]: `echo no; false m.tvmscript` does not say `never`"},
      {"ProblemOfTooManyBytes",
       {"plan", "p.csv"},
       {{"p.csv", ""}},
       1,
       "error[TN0003]: `p.csv` is no file of at most 1073741824 bytes",
       [] { std::filesystem::resize_file("p.csv", (uint64_t{1} << 30) + 1); }},
  };
}

}  // namespace

std::vector<Case> command_cases() {
  std::vector<Case> all = options();
  const std::vector<Case> more = files();
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace tenon::bad_input
