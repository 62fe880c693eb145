// SPDX-License-Identifier: Apache-2.0
// Accesses outside of buffers that only the run shows, and kernels of one's own with one that the
// compiler shows.
#include "cases.h"

namespace tenon::bad_input {

// A kernel of x: float32 (16, 8), y: float32 (4, 8), run for a target.
static Case run(const std::string& name, const std::string& body, const std::string& says,
                const std::vector<std::string>& options = {}) {
  const std::string head =
      "@T.prim_func\ndef main(x: T.Buffer((16, 8), \"float32\"), y: T.Buffer((4, 8), "
      "\"float32\")):\n    at = T.alloc_buffer((4,), \"int32\")\n"
      "    for i in range(4):\n        at[i] = i * 5 + 1\n";
  std::vector<std::string> arguments{"run", "m.tvmscript"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  return {name, arguments, {{"m.tvmscript", head + body}}, 1, says};
}

static void for_every_target(std::vector<Case>& cases, const std::string& name,
                             const std::string& body, const std::string& says,
                             const std::string& interpreted) {
  cases.push_back(run(name + "Native", body, says));
  cases.push_back(run(name + "C", body, says, {"--target", "c"}));
  cases.push_back(run(name + "Interpreted", body, interpreted, {"--interpret"}));
}

static constexpr const char* kAdd =
    "@R.function\ndef main(a: R.Tensor((8,), \"float32\"), b: R.Tensor((8,), \"float32\")):\n"
    "    c = R.add(a, b)\n    return c\n";
static constexpr const char* kWrongAdd =
    "@T.prim_func\ndef my_add(a: T.Buffer((8,), \"float32\"), b: T.Buffer((8,), \"float32\"), "
    "c: T.Buffer((8,), \"float32\")):\n    T.func_attr({\"op\": \"add\"})\n"
    "    for i in range(8):\n        c[i] = a[i] + b[i + 1]\n";

std::vector<Case> access_cases() {
  std::vector<Case> cases;
  for_every_target(
      cases, "IndexFromMemory",
      "    for i, j in T.grid(4, 8):\n        with T.block(\"take\"):\n"
      "            vi, vj = T.axis.remap(\"SS\", [i, j])\n"
      "            y[vi, vj] = x[at[vi] + 4, vj]\n",
      "index 20 of dimension 0 of buffer `x` in `main_kernel` lies outside of its extent 16",
      "index 20 of dimension 0 of buffer `x` lies outside of its extent 16");
  for_every_target(
      cases, "NegativeIndexOfAStore",
      "    for i, j in T.grid(4, 8):\n        y[at[i] - 2, j] = x[i, j]\n",
      "index -1 of dimension 0 of buffer `y` in `main_kernel` lies outside of its extent 4",
      "index -1 of dimension 0 of buffer `y` lies outside of its extent 4");
  for_every_target(
      cases, "OffsetOfAVectorizedLoop",
      "    for i in range(4):\n        for j in T.vectorized(8):\n"
      "            y[i, j] = x[i, at[0] + j]\n",
      "index 8 of dimension 1 of buffer `x` in `main_kernel` lies outside of its extent 8",
      "index 8 of dimension 1 of buffer `x` lies outside of its extent 8");
  for_every_target(
      cases, "DivisorFromMemory",
      "    for i, j in T.grid(4, 8):\n        y[i, j] = x[(i * 3) // (at[i] - 6), j]\n",
      "integer division by zero", "division by zero");
  cases.push_back({"KernelOfOnesOwnReadsOutside",
                   {"run", "m.tvmscript", "--kernels", "k.tvmscript"},
                   {{"m.tvmscript", kAdd}, {"k.tvmscript", kWrongAdd}},
                   1,
                   "k.tvmscript:5:23: error[TN0302]: index i + 1 of dimension 0 of buffer `b` is 8 "
                   "where i = 7; its extent is 8"});
  cases.push_back(
      {"SizesThatACallFixes",
       {"run", "m.tvmscript"},
       {{"m.tvmscript",
         "@I.ir_module\nclass Module:\n    @T.prim_func\n"
         "    def first(a: T.handle, y: T.Buffer((4,), \"float32\")):\n"
         "        n = T.int64()\n        x = T.match_buffer(a, (n,), \"float32\")\n"
         "        for i in range(4):\n            y[i] = x[i]\n"
         "    @T.prim_func\n"
         "    def main(x: T.Buffer((3,), \"float32\"), y: T.Buffer((4,), \"float32\")):\n"
         "        cls = Module\n        T.call_tir(cls.first, x, y)\n"}},
       1,
       "error[TN0302]: index i of dimension 0 of buffer `x` is 3 where i = 3; its "
       "extent is 3"});
  cases.push_back(
      {"UncheckedIsOfCompiledPrograms",
       {"run", "m.tvmscript", "--interpret", "--unchecked"},
       {{"m.tvmscript", kAdd}},
       2,
       "error[TN0011]: --unchecked would have no effect with --interpret: it is of code that is "
       "compiled to be run"});
  return cases;
}

}  // namespace tenon::bad_input
