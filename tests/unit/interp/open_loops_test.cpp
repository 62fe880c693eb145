// SPDX-License-Identifier: Apache-2.0
// Parallel loops that no proof settles are watched where the interpreter runs them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tenon/interp/interpreter.h"
#include "tenon/script/parser.h"
#include "tenon/support/kernel_codes.h"

namespace tenon::interp {
namespace {

// A function of X (4, 8), places P (4,) and Y (4, 8).
IRModule module_of(const std::string& body) {
  std::string text =
      "@I.ir_module\nclass Module:\n"
      "    @T.prim_func\n"
      "    def row(x: T.Buffer((8,), \"float32\"), y: T.Buffer((8,), \"float32\")):\n"
      "        for j in range(8):\n            y[j] = x[j]\n"
      "    @T.prim_func\n"
      "    def f(X: T.Buffer((4, 8), \"float32\"), P: T.Buffer((4,), \"int64\"), Y: T.Buffer((4, "
      "8), "
      "\"float32\")):\n";
  std::string line;
  std::istringstream lines(body);
  while (std::getline(lines, line)) text += "        " + line + "\n";
  return script::parse_module(text);
}

// The message, and its last note; empty where it runs.
std::pair<std::string, std::string> outcome(const std::string& body,
                                            const std::vector<int64_t>& places, bool watch = true) {
  std::vector<float> values(32);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const auto x = TensorData::of(kFloat32, {4, 8}, values), y = x;
  const auto p = TensorData::of(kInt64, {4}, places);
  try {
    Interpreter(module_of(body), {.watch_open_loops = watch}).run_prim_func("f", {x, p, y});
  } catch (const CompileError& error) {
    EXPECT_EQ(error.first().code.id, kRace.id);
    return {error.first().message,
            error.first().notes.empty() ? "" : error.first().notes.back().message};
  }
  return {};
}

const char* const kScatter =
    "for i in T.parallel(4):\n"
    "    for j in range(8):\n        Y[P[i], j] = X[i, j]";
const char* const kScatterByCalls =
    "for i in T.parallel(4):\n"
    "    T.call_tir(cls.row, X[i, 0:8], Y[P[i], 0:8])";

TEST(OpenLoops, PlacesFromMemoryAreWatched) {
  const std::string clash = "is written by iterations 1 and 3 of loop `i`, which may run at once";
  EXPECT_EQ(outcome(kScatter, {3, 1, 0, 2}).first, "");
  EXPECT_EQ(outcome(kScatter, {3, 1, 0, 1}).first, "element (1, 0) of `Y` " + clash);
  EXPECT_EQ(outcome(kScatter, {3, 1, 0, 1}, false).first, "");
  // What a call does is named as the callee sees it.
  EXPECT_EQ(outcome(kScatterByCalls, {3, 1, 0, 2}).first, "");
  EXPECT_EQ(outcome(kScatterByCalls, {3, 1, 0, 1}).first, "element (0) of `y` " + clash);
}

TEST(OpenLoops, ARowThatAnotherIterationWritesIsNotRead) {
  const char* const body =
      "for i in T.parallel(4):\n"
      "    for j in range(8):\n        Y[i, j] = Y[P[i], j] + X[i, j]";
  EXPECT_EQ(outcome(body, {0, 1, 2, 3}).first, "");
  EXPECT_EQ(outcome(body, {0, 0, 2, 3}).first,
            "element (0, 0) of `Y` is written and then read by iterations 0 and 1 of loop `i`, "
            "which may run at once");
  EXPECT_EQ(outcome(body, {1, 1, 2, 3}).first,
            "element (1, 0) of `Y` is read and then written by iterations 0 and 1 of loop `i`, "
            "which may run at once");
}

// A block around the loop allocates `h`: each iteration has its own, as long as it writes first.
TEST(OpenLoops, ScratchOfABlockAroundTheLoop) {
  const char* const body =
      "for i in T.parallel(4):\n"
      "    h = T.alloc_buffer((8,), \"float32\")\n"
      "    if P[i] == 0:\n"
      "        for j in range(8):\n            h[j] = X[i, j]\n"
      "    for j in range(8):\n        Y[i, j] = h[j]";
  EXPECT_EQ(outcome(body, {0, 0, 0, 0}).first, "");
  const auto [message, hint] = outcome(body, {0, 1, 0, 0});
  EXPECT_EQ(message,
            "element (0) of `h` is written and then read by iterations 0 and 1 of loop `i`, which "
            "may run at once");
  EXPECT_EQ(hint,
            "`T.alloc_buffer` belongs to the block around it: `h` is block `root`'s, one for all "
            "iterations of `i`; to make it the iteration's own, allocate it in a `with "
            "T.block(...)` inside of the loop, and write it there before it is read");
}

// What is read behind the loop is shared: several iterations must not write it.
TEST(OpenLoops, ScratchThatIsReadBehindTheLoop) {
  const char* const body =
      "h = T.alloc_buffer((4,), \"float32\")\n"
      "for i in range(4):\n    h[i] = T.float32(0)\n"
      "for i in T.parallel(4):\n    h[P[i]] = X[i, 0]\n"
      "for i in range(4):\n    Y[i, 0] = h[i]";
  EXPECT_EQ(outcome(body, {3, 2, 1, 0}).first, "");
  EXPECT_EQ(
      outcome(body, {3, 2, 3, 0}).first,
      "element (3) of `h` is written by iterations 0 and 2 of loop `i`, which may run at once");
}

}  // namespace
}  // namespace tenon::interp
