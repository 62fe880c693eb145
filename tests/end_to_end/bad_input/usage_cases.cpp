// Command lines themselves, passes, targets, and problems of the memory planner.
#include "cases.h"

namespace tenon::bad_input {

static Case plan(const std::string& name, const std::string& csv, const std::string& says) {
  return {name, {"plan", "p.csv"}, {{"p.csv", csv}}, 1, says};
}
static const char* const kModule = "@R.function\ndef main(x: R.Tensor((2, 3), \"float32\")):\n    y = R.add(x, x)\n    return y\n";

static Case passes(const std::string& name, const std::string& list, int status, const std::string& says) {
  return {name, {"opt", "m.tvmscript", "--passes", list}, {{"m.tvmscript", kModule}}, status, says};
}
static Case target(const std::string& name, const std::string& text, int status, const std::string& says) {
  return {name, {"run", "m.tvmscript", "--target", text}, {{"m.tvmscript", kModule}}, status, says};
}

std::vector<Case> usage_cases() {
  const std::string good = "id,lower,upper,size\na,0,3,16\nb,2,5,16\n";
  return {
      {"NoCommand", {}, {}, 2, ""},
      {"UnknownCommand", {"frobnicate"}, {}, 2, ""},
      {"UnknownOption", {"run", "m.onnx", "--frobnicate"}, {}, 2, ""},
      {"NoModel", {"run"}, {}, 2, ""},
      {"ModelOfNoKnownKind", {"run", "m.txt"}, {{"m.txt", "hello"}}, 1, ""},
      {"NoSharedLibrary", {"run", "m.so"}, {{"m.so", "hello"}}, 1, ""},
      {"NotANumber", {"run", "m.tvmscript", "--repeat", "many"}, {{"m.tvmscript", kModule}}, 2, ""},
      {"RepeatZero", {"run", "m.tvmscript", "--repeat", "0"}, {{"m.tvmscript", kModule}}, 2, ""},
      {"ThreadsTooMany", {"run", "m.tvmscript", "--threads", "100000"}, {{"m.tvmscript", kModule}}, 2, ""},
      {"ThreadsNegative", {"run", "m.tvmscript", "--threads", "-1"}, {{"m.tvmscript", kModule}}, 2, ""},
      {"UnknownLibrary", {"run", "m.tvmscript", "--libs", "nonsense"}, {{"m.tvmscript", kModule}}, 2, ""},
      {"EmitUnknown", {"compile", "m.tvmscript", "-o", "out", "--emit", "exe"}, {{"m.tvmscript", kModule}}, 2, ""},
      {"CompileWithoutOut", {"compile", "m.tvmscript"}, {{"m.tvmscript", kModule}}, 2, ""},
      {"CompileIntoNowhere", {"compile", "m.tvmscript", "-o", "no/such/folder/m.so"}, {{"m.tvmscript", kModule}}, 1, ""},
      {"CompileOntoAFile", {"compile", "m.tvmscript", "-o", "m.tvmscript/m.so"}, {{"m.tvmscript", kModule}}, 1, ""},
      target("UnknownTarget", "frobnicate", 1, ""),
      target("UnknownProcessor", "llvm -mcpu=frobnicate", 1, ""),
      target("UnknownFeature", "llvm -mcpu=haswell -mattr=+frobnicate", 1, ""),
      target("UnknownTargetOption", "llvm -frobnicate=1", 1, ""),
      target("TargetNumberTooLarge", "llvm -mcpu=haswell -l1=99999999999999999999", 1, ""),
      target("EmptyTarget", "", 1, ""),
      passes("UnknownPass", "FuseOpz", 2, ""),
      passes("PassListCut", "FuseOps(", 2, ""),
      passes("PassListComma", "FuseOps FoldConstant", 2, ""),
      passes("UnknownPassOption", "FuseOps(frobnicate=1)", 1, ""),
      passes("PassOptionOfAnotherKind", "PlanMemory(work_limit=\"much\")", 1, ""),
      passes("PassOptionTwice", "PlanMemory(work_limit=1, work_limit=2)", 2, ""),
      passes("PassOutOfOrder", "PlanMemory", 1, ""),
      {"PrintAfterUnknown", {"print", "m.tvmscript", "--after", "FuseOpz"}, {{"m.tvmscript", kModule}}, 2, ""},
      {"OptNothing", {"opt"}, {}, 2, ""},
      {"NoCases", {"test-onnx", "."}, {}, 1, ""},
      {"CasesMissing", {"test-onnx", "nowhere"}, {}, 1, ""},
      plan("CsvEmpty", "", ""),
      plan("CsvNoHeader", "a,0,3,16\n", ""),
      plan("CsvColumnMissing", "id,lower,upper\na,0,3\n", ""),
      plan("CsvColumnTwice", "id,lower,upper,size,size\na,0,3,16,16\n", ""),
      plan("CsvFieldMissing", "id,lower,upper,size\na,0,3\n", ""),
      plan("CsvFieldTooMany", "id,lower,upper,size\na,0,3,16,9\n", ""),
      plan("CsvNotANumber", "id,lower,upper,size\na,0,3,many\n", ""),
      plan("CsvNegative", "id,lower,upper,size\na,0,3,-16\n", ""),
      plan("CsvTooLarge", "id,lower,upper,size\na,0,3,99999999999999999999\n", ""),
      plan("CsvUpperBelowLower", "id,lower,upper,size\na,3,0,16\n", ""),
      plan("CsvIdTwice", "id,lower,upper,size\na,0,3,16\na,0,3,16\n", ""),
      plan("CsvSumOverflows", "id,lower,upper,size\na,0,3,9223372036854775807\nb,0,3,9223372036854775807\n", ""),
      {"CsvMissing", {"plan", "missing.csv"}, {}, 1, ""},
      {"CsvTooSmallACapacity", {"plan", "p.csv", "--capacity", "31"}, {{"p.csv", good}}, 1, ""},
      {"CapacityNegative", {"plan", "p.csv", "--capacity", "-1"}, {{"p.csv", good}}, 2, ""},
      {"TimeLimitNegative", {"plan", "p.csv", "--time-limit", "-1"}, {{"p.csv", good}}, 2, ""},
      {"SolutionIntoNowhere", {"plan", "p.csv", "-o", "no/such/folder.csv"}, {{"p.csv", good}}, 1, ""},
  };
}

}  // namespace tenon::bad_input
