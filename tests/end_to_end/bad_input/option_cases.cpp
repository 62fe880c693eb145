// SPDX-License-Identifier: Apache-2.0
// Values of options that cannot be: what each command says to them.
#include "cases.h"

namespace tenon::bad_input {

namespace {

using File = std::pair<std::string, std::string>;

const File kMTvmscript = {"m.tvmscript",
                          "@R.function\n"
                          "def main(x: R.Tensor((2, 3), \"float32\")):\n"
                          "    y = R.add(x, x)\n"
                          "    return y\n"};
const File kNTvmscript = {"n.tvmscript",
                          "@R.function\n"
                          "def main(x: R.Tensor((\"n\", 3), \"float32\")):\n"
                          "    y = R.add(x, x)\n"
                          "    return y\n"};
const File kKPy = {"k.py",
                   "@T.prim_func\n"
                   "def my_add(x: T.Buffer((\"n\",), \"float32\"), y: T.Buffer((\"n\",), "
                   "\"float32\"), z: T.Buffer((\"n\",), \"float32\")):\n"
                   "    T.func_attr({\"op\": \"add\"})\n"
                   "    n = T.int64()\n"
                   "    for i in range(n):\n"
                   "        z[i] = x[i] + y[i]\n"};
const File kUnusedPy = {
    "unused.py",
    "@T.prim_func\n"
    "def my_exp(x: T.Buffer((\"n\",), \"float32\"), y: T.Buffer((\"n\",), \"float32\")):\n"
    "    T.func_attr({\"op\": \"exp\"})\n"
    "    n = T.int64()\n"
    "    for i in range(n):\n"
    "        y[i] = T.exp(x[i])\n"};
const File kDeclaredPy = {"declared.py",
                          "@T.prim_func\n"
                          "def f(x: T.Buffer((8,), \"float32\"), y: T.Buffer((8,), \"float32\")):\n"
                          "    T.func_attr({\"op\": \"com.example::none\"})\n"
                          "    for i in range(8):\n"
                          "        y[i] = x[i]\n"};
const File kFPy = {"f.py",
                   "@T.prim_func\n"
                   "def add(x: T.Buffer((8,), \"float32\"), y: T.Buffer((8,), \"float32\")):\n"
                   "    for i in range(8):\n"
                   "        y[i] = x[i]\n"};
const File kPCsv = {"p.csv",
                    "id,lower,upper,size\n"
                    "a,0,3,16\n"};
const File kPPy = {"p.py",
                   "@R.function\n"
                   "def add(x: R.Tensor((8,), \"float32\")):\n"
                   "    return R.exp(x)\n"};
const File kRRelay = {"r.relay",
                      "#[version = \"0.0.5\"]\n"
                      "def @main(%x: Tensor[(2), float32]) { add(%x, %x) }\n"};
const File kE1Py = {"e1.py",
                    "@T.prim_func\n"
                    "def main(x: T.Buffer((8,), \"float32\")) -> T.float32:\n"
                    "    return x[0]\n"};
const File kE2Py = {"e2.py",
                    "@T.prim_func\n"
                    "def main(x: T.Buffer((8,), \"float32\"), h: T.handle):\n"
                    "    x[0] = 1.0\n"};
const File kE3Py = {"e3.py",
                    "@T.prim_func\n"
                    "def main(x: T.Buffer((8,), \"float32\"), y: T.Buffer((8,), \"float32\")):\n"
                    "    assert x[0] > 0.0, \"no\"\n"};
const File kE4Py = {"e4.py",
                    "@T.prim_func\n"
                    "def main(n: T.int64, x: T.Buffer((\"n * 2\",), \"float32\")):\n"
                    "    x[0] = 1.0\n"};
const File kExtPy = {"ext.py",
                     "@T.extern_func\n"
                     "def f(x: T.Buffer((8,), \"float32\"), y: T.Buffer((8,), \"float32\")):\n"
                     "    T.func_attr({\"effects\": [\"in\", \"out\"]})\n"};

}  // namespace

std::vector<Case> option_cases() {
  return {
      {"CheckKernelsSize",
       {"check", "--kernels", "k.py", "--size", "n"},
       {kKPy},
       2,
       "error: --size n: expected NAME=N, N from 1 to 16777216"},
      {"CheckKernelsSize2",
       {"check", "--kernels", "k.py", "--size", "q=4"},
       {kKPy},
       2,
       "error: --size q=4: no kernel has a dimension `q`; did you mean `n`?"},
      {"CheckKernelsTolerance",
       {"check", "--kernels", "k.py", "--tolerance", "-1"},
       {kKPy},
       2,
       "error: --tolerance -1 is below 0"},
      {"CheckKernels",
       {"check", "--kernels", "f.py"},
       {kFPy},
       1,
       "error[TN0901]: no function of f.py has attribute `op`; expected the name of the operator "
       "that it computes"},
      {"CompileTarget",
       {"compile", "m.tvmscript", "--target", "c", "-o", "x.so"},
       {kMTvmscript},
       2,
       "error: -o x.so: C is written to a folder"},
      {"CompileEmit",
       {"compile", "m.tvmscript", "-o", "out", "--emit", "c"},
       {kMTvmscript},
       2,
       "error: --emit c is not of target `native`"},
      {"CompileFile",
       {"compile", "m.tvmscript", "-o", "x.o"},
       {kMTvmscript},
       1,
       "error[TN0001]: x.o: `.o` files are not written yet; expected .so or a folder"},
      {"CompilePrintAfter",
       {"compile", "m.tvmscript", "-o", "out", "--print-after", "Nothing"},
       {kMTvmscript},
       2,
       "error: --print-after Nothing: no such pass is run"},
      {"RunKernel",
       {"run", "m.tvmscript", "--kernel", "add"},
       {kMTvmscript},
       2,
       "error: --kernel add: expected OPERATOR=FILE:FUNCTION, or NODE=FILE:FUNCTION"},
      {"RunKernel2",
       {"run", "m.tvmscript", "--kernel", "add=k.py:none"},
       {kMTvmscript, kKPy},
       2,
       "error: --kernel add=k.py:none: k.py has no PrimFunc `none`; it has `my_add`"},
      {"OptComposite",
       {"opt", "m.tvmscript", "--composite", "ext.py"},
       {kMTvmscript, kExtPy},
       1,
       "error[TN0803]: --composite ext.py: `f` is an extern function; expected patterns under "
       "@R.function or @T.prim_func"},
      {"OptComposite2",
       {"opt", "m.tvmscript", "--composite", "p.py"},
       {kMTvmscript, kPPy},
       1,
       "error[TN0803]: --composite p.py: pattern `add` belongs to no back end; give it the "
       "attribute {\"Composite\": \"BACKEND.add\"}, or one --call-by-name"},
      {"OptFile",
       {"opt"},
       {},
       2,
       "error: FILE is missing; or give --list-passes or --print-pipeline"},
      {"RunPlace",
       {"run", "m.tvmscript", "--place", "y"},
       {kMTvmscript},
       2,
       "error: --place y: expected NODE=PROVIDER"},
      {"RunPlacePlace",
       {"run", "m.tvmscript", "--place", "y=none", "--place", "y=none"},
       {kMTvmscript},
       2,
       "error: --place y=none: the node is placed twice"},
      {"RunPlace2",
       {"run", "m.tvmscript", "--place", "y=kernels"},
       {kMTvmscript},
       1,
       "error[TN0806]: --place y=kernels: the module has no kernel for an operator; expected "
       "--kernels or --kernel"},
      {"RunPlaceKernels",
       {"run", "m.tvmscript", "--place", "none=kernels", "--kernels", "k.py"},
       {kMTvmscript, kKPy},
       1,
       "error[TN0806]: --place none=kernels: no operator is left of a node `none`"},
      {"RunPlaceKernels2",
       {"run", "m.tvmscript", "--place", "y=kernels.mine", "--kernels", "k.py"},
       {kMTvmscript, kKPy},
       1,
       "error[TN0806]: --place y=kernels.mine: no kernel `mine`; there are: my_add"},
      {"RunPluginPluginTimeout",
       {"run", "m.tvmscript", "--plugin", "none.so", "--plugin-timeout", "-1"},
       {kMTvmscript},
       2,
       "error: --plugin-timeout -1 is below 0"},
      {"RunInProcess",
       {"run", "m.tvmscript", "--in-process"},
       {kMTvmscript},
       2,
       "error: --in-process is of --plugin; there is none"},
      {"RunBackendOption",
       {"run", "m.tvmscript", "--backend-option", "x"},
       {kMTvmscript},
       2,
       "error: --backend-option x: expected NAME.KEY=VALUE"},
      {"RunBackendOption2",
       {"run", "m.tvmscript", "--backend-option", "x.y=3"},
       {kMTvmscript},
       2,
       "error: --backend-option x.y=3: there is no back end `x`"},
      {"RunDim",
       {"run", "n.tvmscript", "--dim", "n"},
       {kNTvmscript},
       2,
       "error: --dim n: expected NAME=VALUE"},
      {"RunDim2",
       {"run", "n.tvmscript", "--dim", "n=-4"},
       {kNTvmscript},
       2,
       "error: --dim n=-4: expected a number from 0 to 1099511627776"},
      {"RunInputSeed",
       {"run", "n.tvmscript", "--input", "x", "--seed", "3"},
       {kNTvmscript},
       2,
       "error: --input x: expected NAME=VALUE"},
      {"RunShape",
       {"run", "m.tvmscript", "--shape", "x=1,?"},
       {kMTvmscript},
       1,
       "error[TN0004]: m.tvmscript: shapes are given; expected an .onnx model"},
      {"RunShapeWithoutDims",
       {"run", "m.tvmscript", "--shape", "x"},
       {kMTvmscript},
       2,
       "error: --shape x: expected NAME=1,?,224"},
      {"RunShapeOfLetters",
       {"run", "m.tvmscript", "--shape", "x=1,n"},
       {kMTvmscript},
       2,
       "error: --shape x=1,n: `n` is no dimension; expected a number, or ? for what the model "
       "says"},
      {"RunShapeTwice",
       {"run", "m.tvmscript", "--shape", "x=1", "--shape", "x=2"},
       {kMTvmscript},
       2,
       "error: --shape x=2: the input is given twice"},
      {"RunLengthWithoutNumber",
       {"run", "m.tvmscript", "--length", "x"},
       {kMTvmscript},
       2,
       "error: --length x: expected NAME=N or NAME=none"},
      {"RunNegativeLength",
       {"run", "m.tvmscript", "--length", "x=-1"},
       {kMTvmscript},
       2,
       "error: --length x=-1: expected a number of at least 0, or none"},
      {"RunLengthOfAScript",
       {"run", "m.tvmscript", "--length", "x=1"},
       {kMTvmscript},
       1,
       "error[TN0004]: m.tvmscript: lengths are given; expected an .onnx model"},
      {"GenerateNothing",
       {"generate", "m.tvmscript", "--tokens", "0"},
       {kMTvmscript},
       2,
       "error: --tokens 0 is not between 1 and "},
      {"GenerateFromNothing",
       {"generate", "m.tvmscript", "--prompt", ""},
       {kMTvmscript},
       2,
       "error: --prompt is empty; expected a byte or more"},
      {"RunNegativeSteps",
       {"run", "m.tvmscript", "--max-steps", "-1"},
       {kMTvmscript},
       2,
       "error: --max-steps -1: expected a number from 0"},
      {"RunUnknownArithmetic",
       {"run", "m.tvmscript", "--fp", "loose"},
       {kMTvmscript},
       2,
       "error: --fp loose: expected auto, strict or fast"},
      {"RunBound",
       {"run", "m.tvmscript", "--bound", "n"},
       {kMTvmscript},
       2,
       "error: --bound n: expected NAME=N, a number from 0"},
      {"RunBoundTwice",
       {"run", "m.tvmscript", "--bound", "n=1", "--bound", "n=2"},
       {kMTvmscript},
       2,
       "error: --bound n=2: the number has a bound already"},
      {"RunBoundOfNothing",
       {"run", "m.tvmscript", "--bound", "n=1"},
       {kMTvmscript},
       1,
       "error[TN0004]: bound of `n`: the program reads no number of that name; it reads none"},
      {"RunParams",
       {"run", "m.tvmscript", "--params", "p.csv"},
       {kMTvmscript, kPCsv},
       1,
       "error[TN0004]: m.tvmscript: parameters are given; expected a .relay model"},
      {"RunParams2",
       {"run", "r.relay", "--params", "p.csv"},
       {kPCsv, kRRelay},
       1,
       "error[TN0504]: p.csv: not a file of parameters; expected what relay.save_param_dict "
       "writes"},
      {"RunSignatures",
       {"run", "m.tvmscript", "--signatures", "m.tvmscript"},
       {kMTvmscript},
       1,
       "error[TN0105]: --signatures m.tvmscript: `main` is no extern function; expected "
       "definitions under @T.extern_func"},
      {"RunSignatures2",
       {"run", "m.tvmscript", "--signatures", "ext.py"},
       {kMTvmscript, kExtPy},
       0,
       "warning[TN0013]: --signatures ext.py: the program calls none of its functions"},
      {"RunKernels",
       {"run", "m.tvmscript", "--kernels", "declared.py"},
       {kMTvmscript, kDeclaredPy},
       1,
       "error[TN0106]: kernel `f` is for `com.example::none`, which nothing declares; expected a "
       "function under @R.function with attribute {\"op\": \"com.example::none\"}"},
      {"RunKernels2",
       {"run", "m.tvmscript", "--kernels", "unused.py"},
       {kMTvmscript, kUnusedPy},
       0,
       "warning[TN0013]: no kernel of unused.py is used; `my_exp`: the model calls no `exp`"},
      {"RunFile",
       {"run", "e1.py"},
       {kE1Py},
       1,
       "error[TN0001]: PrimFunc `main` returns a value; the entry of a program writes buffers"},
      {"RunFile2",
       {"run", "e2.py"},
       {kE2Py},
       1,
       "error[TN0001]: parameter `h` of the entry is a handle; expected a buffer or a scalar"},
      {"RunFile3",
       {"run", "e3.py"},
       {kE3Py},
       1,
       "error[TN0001]: PrimFunc `main` writes none of its parameters; a program has outputs"},
      {"RunFile4",
       {"run", "e4.py"},
       {kE4Py},
       1,
       "error[TN0001]: extent `n * 2` of parameter `x` depends on scalar `n`; expected a buffer "
       "with `n` alone as an extent"},
      {"PlanPool",
       {"plan", "p.csv", "--pool", "a=ro"},
       {kPCsv},
       1,
       "error[TN0004]: --pool a=ro: the buffers of a problem are written; expected a=SIZE"},
      {"PlanPool2",
       {"plan", "p.csv", "--pool", "a=4KB"},
       {kPCsv},
       1,
       "error[TN0004]: --pool a=4KB: `4KB` is no size; expected NAME, NAME=SIZE, NAME=ro or "
       "NAME=SIZE,ro with a SIZE such as 65536 or 64KiB"},
      {"PlanPool3",
       {"plan", "p.csv", "--pool", "a="},
       {kPCsv},
       1,
       "error[TN0004]: --pool a=: nothing follows `=`; expected NAME, NAME=SIZE, NAME=ro or "
       "NAME=SIZE,ro with a SIZE such as 65536 or 64KiB"},
      {"PlanPoolPool",
       {"plan", "p.csv", "--pool", "a", "--pool", "a"},
       {kPCsv},
       1,
       "error[TN0004]: --pool a: the name is given twice"},
      {"PlanPoolPool2",
       {"plan", "p.csv", "--pool", "a=ro", "--pool", "b=ro"},
       {kPCsv},
       1,
       "error[TN0004]: --pool b=ro: there is a read-only pool already"},
      {"PlanPoolPool3",
       {"plan", "p.csv", "--pool", "a", "--pool", "b", "-o", "q.csv"},
       {kPCsv},
       1,
       "error[TN0004]: -o q.csv: the form has no column for pools; expected one --pool, or --json"},
      {"ReduceFails",
       {"reduce", "m.tvmscript", "--fails", "true", "-o", "made"},
       {kMTvmscript},
       1,
       "error[TN0601]: nothing to reduce: `true m.tvmscript` succeeds"},
      {"ReduceFailsSays",
       {"reduce", "m.tvmscript", "--fails", "false", "--says", "never", "-o", "made"},
       {kMTvmscript},
       2,
       "error: reduce: --says is an option of `tenon run`; with --fails write it into CMD"},
      {"ReduceFailsThreads",
       {"reduce", "m.tvmscript", "--fails", "echo no; false", "-o", "made", "--threads", "2"},
       {kMTvmscript},
       2,
       "error: reduce: --threads is an option of `tenon run`; with --fails write it into CMD"},
      {"TestOnnxTolerance",
       {"test-onnx", "d", "--tolerance", "-1"},
       {},
       2,
       "error: --tolerance -1 is below 0"},
      {"OperatorsFile",
       {"operators", "none"},
       {},
       2,
       "error: no operator's name contains `none`; did you mean `Conv`?"},
  };
}

}  // namespace tenon::bad_input
