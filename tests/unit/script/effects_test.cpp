// SPDX-License-Identifier: Apache-2.0
// What each kind of statement does, as one line for each effect.
#include "tenon/tir/effects.h"

#include <gtest/gtest.h>

#include "tenon/script/parser.h"
#include "tenon/tir/call_effects.h"

namespace tenon::tir {
namespace {

using Kind = StmtEffect::Kind;

std::string_view word(Kind kind) {
  switch (kind) {
    case Kind::kRead: return "read";
    case Kind::kAccumulate: return "accumulate";
    case Kind::kWrite: return "write";
    case Kind::kArgument: return "argument";
    case Kind::kView: return "view";
    case Kind::kOpaque: return "opaque";
    case Kind::kCheck: return "check";
    case Kind::kDivide: return "divide";
    case Kind::kLoop: return "loop";
    case Kind::kCall: return "call";
    case Kind::kForeign: return "foreign";
  }
  return "?";
}

std::string name_of(const NodePtr& memory) {
  if (const auto* buffer = memory.as<Buffer>()) return buffer->name;
  return "*";  // a pointer
}

// Of function `f`, one word after the other: "read A, write B".
std::string effects(const IRModule& module) {
  CallEffects callees(module);
  std::string out;
  each_effect(module.find<PrimFunc>("f")->body, callees.callees(), [&](const StmtEffect& effect) {
    out += (out.empty() ? "" : ", ") + std::string(word(effect.kind));
    if (effect.memory) out += " " + name_of(effect.memory);
    if (effect.kind == Kind::kArgument) out += " " + std::string(name_of(effect.use));
  });
  return out;
}

IRModule module_of(const std::string& body, const std::string& functions = "") {
  return script::parse_module("@I.ir_module\nclass Module:\n" + functions +
                              "    @T.prim_func\n"
                              "    def f(a: T.handle, B: T.Buffer((16,), \"float32\"), "
                              "I: T.Buffer((16,), \"int32\")):\n"
                              "        n = T.int64(is_size_var=True)\n"
                              "        A = T.match_buffer(a, (n,), \"float32\")\n" +
                              body);
}
std::string effects(const std::string& body, const std::string& functions = "") {
  return effects(module_of(body, functions));
}

TEST(Effects, LoadsStandBeforeTheStoreTheyAreFor) {
  EXPECT_EQ(effects("        for i in range(n):\n"
                    "            B[I[i]] = A[i] + T.float32(1)\n"),
            "read A, read I, write B");
}

TEST(Effects, ConditionsAndBoundsAreReads) {
  EXPECT_EQ(effects("        for i in range(I[0]):\n"
                    "            if A[i] > T.float32(0):\n"
                    "                B[i] = T.float32(0)\n"
                    "            else:\n"
                    "                B[i] = T.if_then_else(I[i] > 0, A[i], T.float32(1))\n"),
            "read I, read A, write B, read I, read A, write B");
}

TEST(Effects, AReductionReadsItsOwnSum) {
  const char* block =
      "        for i, k in T.grid(16, 16):\n"
      "            with T.block(\"sum\"):\n"
      "                vi, vk = T.axis.remap(\"SR\", [i, k])\n"
      "%s"
      "                B[vi] = B[vi] + A[vk]\n";
  const auto with = [&](const std::string& init) {
    std::string text = block;
    return text.replace(text.find("%s"), 2, init);
  };
  EXPECT_EQ(effects(with("                with T.init():\n"
                         "                    B[vi] = T.float32(0)\n")),
            "write B, accumulate B, read A, write B");
  EXPECT_EQ(effects(with("                with T.init():\n"
                         "                    B[0] = T.float32(0)\n")),
            "write B, read B, read A, write B")
      << "another place";
  EXPECT_EQ(effects(with("")), "read B, read A, write B");
}

TEST(Effects, ViewsGiveMemoryAnotherName) {
  EXPECT_EQ(effects("        with T.block(\"b\"):\n"
                    "            V = T.match_buffer(B[4:8], (4,), \"float32\")\n"
                    "            V[0] = A[0]\n"),
            "view B, read A, write V");
  EXPECT_EQ(effects("        V = T.decl_buffer((16,), \"float32\", data=B.data)\n"
                    "        V[0] = A[0]\n"),
            "view *, read A, write V");
}

TEST(Effects, PointersHideWhatIsDone) {
  EXPECT_EQ(effects("        T.evaluate(T.call_extern(\"int32\", \"g\", B.data, I[0]))\n"),
            "foreign, opaque *, opaque I, opaque *, read I");
  EXPECT_EQ(effects("        T.evaluate(T.call_extern(\"int32\", \"g\", T.address_of(B[I[0]])))\n"),
            "foreign, opaque B, opaque I, opaque B, read I");
}

TEST(Effects, HintsAndEndsDoNothing) {
  EXPECT_EQ(effects("        T.evaluate(T.prefetch(B[I[0]], 0, 3))\n"), "read I");
}

TEST(Effects, WhatMayStopOrNotEnd) {
  EXPECT_EQ(effects("        assert I[0] > 0, \"no\"\n"
                    "        while I[0] > 0:\n"
                    "            I[0] = I[1] // I[2]\n"
                    "        I[1] = I[2] // 3\n"),
            "check, read I, loop, read I, divide, read I, read I, write I, read I, write I");
}

TEST(Effects, CallsDoWhatTheirCalleesDo) {
  const char* callees =
      "    @T.prim_func(private=True)\n"
      "    def g(X: T.Buffer((8,), \"float32\"), Y: T.Buffer((8,), \"float32\"), "
      "Z: T.Buffer((8,), \"float32\")):\n"
      "        for i in range(8):\n"
      "            Y[i] = X[i]\n"
      "        Z[0] = Z[0] + X[0]\n";
  const IRModule module =
      module_of("        T.call_tir(cls.g, B[I[0] : I[0] + 8], B[0:8], A[0:8])\n", callees);
  EXPECT_EQ(effects(module), "call, argument B in, read I, argument B out, argument A inout");
  std::string unknown;
  each_effect(module.find<PrimFunc>("f")->body, unknown_callee, [&](const StmtEffect& effect) {
    if (effect.kind == Kind::kArgument) unknown += std::string(name_of(effect.use)) + " ";
  });
  EXPECT_EQ(unknown, "inout inout inout ");
}

TEST(Effects, TogetherTheyTellWhetherTwoMayChangePlaces) {
  const auto of = [](const std::string& body) {
    return effects_of(module_of(body).find<PrimFunc>("f")->body);
  };
  const IRModule one = module_of(
      "        B[0] = T.float32(1)\n"
      "        I[0] = 1\n"
      "        B[1] = T.Cast(\"float32\", I[0])\n"
      "        assert I[1] > 0, \"no\"\n"
      "        T.evaluate(T.call_extern(\"int32\", \"g\", B.data))\n");
  const Seq* list = nullptr;
  walk<Seq>(one.find<PrimFunc>("f")->body, [&](const Seq& found) { list = &found; });
  ASSERT_TRUE(list && list->stmts.size() == 5);
  std::vector<Effects> each;
  for (const Stmt& stmt : list->stmts) each.push_back(effects_of(stmt));
  EXPECT_FALSE(each[0].conflicts(each[1]));
  EXPECT_TRUE(each[0].conflicts(each[2])) << "both store";
  EXPECT_TRUE(each[1].conflicts(each[2])) << "the second reads what the first stores";
  EXPECT_TRUE(each[1].overwrites(each[2])) << "the first stores what the second reads";
  EXPECT_FALSE(each[2].overwrites(each[1]));
  EXPECT_FALSE(each[2].conflicts(each[3]));
  EXPECT_TRUE(each[0].conflicts(each[4])) << "by the buffer's pointer";
  EXPECT_TRUE(each[3].conflicts(each[4])) << "one may stop the other";
  EXPECT_FALSE(of("        B[0] = A[0]\n").has_others);
}

}  // namespace
}  // namespace tenon::tir
