// SPDX-License-Identifier: Apache-2.0
// Results that are kept: of what runs on the same arguments, and of nothing else.
#include "tenon/interp/call_memo.h"

#include <gtest/gtest.h>

#include "tenon/interp/interpreter.h"
#include "tenon/script/parser.h"

namespace tenon::interp {
namespace {

// A `main` that calls `f` of `x` and `y` (64 x 64), in which `y` holds what main put there.
IRModule calls(const std::string& body, const std::string& fill = "T.float32(7)") {
  return script::parse_module(
      "@I.ir_module\nclass Module:\n    @T.prim_func(private=True)\n    def f(x: T.Buffer((64, "
      "64), "
      "\"float32\"), y: T.Buffer((64, 64), \"float32\")):\n" +
      body +
      "\n    @T.prim_func\n    def main(x: T.Buffer((64, 64), \"float32\"), y: T.Buffer((64, 64), "
      "\"float32\")):\n        T.func_attr({\"tenon.num_inputs\": 1})\n"
      "        for i, j in T.grid(64, 64):\n            y[i, j] = " +
      fill + "\n        T.call_tir(Module.f, x[0:64, 0:64], y[0:64, 0:64])\n");
}

class Memo : public testing::Test {
 protected:
  std::vector<float> run(const IRModule& module, float first = 1) {
    std::vector<float> x(64 * 64, 1);
    x[0] = first;
    const auto out = Interpreter(module, {.memo = memo_})
                         .run_main({TensorData::of(kFloat32, {64, 64}, x)})
                         .at(0);
    const auto values = out->as_span<float>();
    return {values.begin(), values.end()};
  }
  std::shared_ptr<CallMemo> memo_ = std::make_shared<CallMemo>();
};

const std::string kCopy = "        for i, j in T.grid(64, 64):\n            y[i, j] = x[i, j]";

TEST_F(Memo, KnowsArgumentsByTheirContent) {
  EXPECT_EQ(run(calls(kCopy))[0], 1);
  EXPECT_EQ(run(calls(kCopy))[0], 1);
  EXPECT_EQ(memo_->runs(), 1);
  EXPECT_EQ(memo_->hits(), 1);
  EXPECT_EQ(run(calls(kCopy), 2)[0], 2);
  EXPECT_EQ(memo_->runs(), 2);
}

TEST_F(Memo, LeavesWhatACallDoesNotWrite) {
  const std::string half = "        for i, j in T.grid(32, 64):\n            y[i, j] = x[i, j]";
  for (const std::string fill : {"7", "8", "7"}) {
    const std::vector<float> out = run(calls(half, "T.float32(" + fill + ")"));
    EXPECT_EQ(out[0], 1);
    EXPECT_EQ(out.back(), std::stof(fill));
  }
  EXPECT_EQ(memo_->runs(), 1);
}

TEST_F(Memo, WhatIsReadBeforeItIsWrittenCounts) {
  const std::string sum =
      "        for i, j in T.grid(64, 64):\n            y[i, j] = y[i, j] + x[i, j]";
  EXPECT_EQ(run(calls(sum))[0], 8);
  EXPECT_EQ(run(calls(sum, "T.float32(1)"))[0], 2);
  EXPECT_EQ(run(calls(sum))[0], 8);
  EXPECT_EQ(memo_->runs(), 2);
}

TEST_F(Memo, WhatOthersLeftInScratchDoesNotCount) {
  // Nothing proves that an element is written before it is read, but it is.
  const std::string scratch =
      "        for i, j in T.grid(64, 64):\n            if x[i, j] < T.float32(100):\n"
      "                y[i, j] = x[i, j]\n            y[i, j] = y[i, j] + T.float32(1)";
  EXPECT_EQ(run(calls(scratch))[0], 2);
  EXPECT_EQ(run(calls(scratch, "T.float32(9)"))[0], 2);
  EXPECT_EQ(memo_->runs(), 1);
  EXPECT_EQ(run(calls(scratch), 200)[0], 8);
  EXPECT_EQ(run(calls(scratch, "T.float32(9)"), 200)[0], 10);
  EXPECT_EQ(run(calls(scratch))[0], 2);
}

TEST_F(Memo, KeepsNoErrors) {
  const std::string wild =
      "        for i, j in T.grid(64, 64):\n            y[i, j] = x[i, T.Cast(\"int64\", x[i, j])]";
  EXPECT_EQ(run(calls(wild))[5], 1);
  for (int again = 0; again < 2; ++again) EXPECT_THROW(run(calls(wild), 64), CompileError);
  EXPECT_EQ(run(calls(wild))[5], 1);
}

TEST_F(Memo, IsBounded) {
  memo_ = std::make_shared<CallMemo>(5 * 64 * 64 * 4);  // five results
  for (int round = 0; round < 2; ++round)
    for (int first = 0; first < 8; ++first) EXPECT_EQ(run(calls(kCopy), first)[0], first);
  EXPECT_EQ(memo_->runs(), 16);
  for (int first = 4; first < 8; ++first) EXPECT_EQ(run(calls(kCopy), first)[0], first);
  EXPECT_EQ(memo_->runs(), 16);
}

TEST_F(Memo, CodeIsTheSameByItsInstructions) {
  // Annotations say nothing to the interpreter.
  const std::string annotated =
      "        for i in T.serial(64, annotations={\"mark\": 1}):\n            for j in range(64):\n"
      "                y[i, j] = x[i, j]";
  EXPECT_EQ(run(calls(annotated))[0], 1);
  EXPECT_EQ(run(calls(kCopy))[0], 1);
  EXPECT_EQ(memo_->runs(), 1);
  const std::string other =
      "        for i, j in T.grid(64, 64):\n            y[i, j] = x[i, j] * T.float32(2)";
  EXPECT_EQ(run(calls(other))[0], 2);
}

}  // namespace
}  // namespace tenon::interp
