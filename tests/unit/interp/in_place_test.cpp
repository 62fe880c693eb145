// SPDX-License-Identifier: Apache-2.0
// Kernels that may write over an input, and programs whose calls do.
#include "tenon/tir/schedule/in_place.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "tenon/interp/interpreter.h"
#include "tenon/script/parser.h"
#include "tenon/script/printer.h"

namespace tenon {
namespace {

constexpr const char* kHead =
    "from tenon.script import ir as I, tir as T\n\n@I.ir_module\nclass Module:\n";

std::string kernel(const std::string& body) {
  return std::string(kHead) +
         "    @T.prim_func\n"
         "    def main(a: T.Buffer((6, 8), \"float32\"), c: T.Buffer((6, 8), \"float32\"), "
         "b: T.Buffer((6, 8), \"float32\")):\n" +
         body;
}

bool may_share(const std::string& text) {
  const IRModule module = script::parse_module(text);
  return tir::may_share_memory(*module.find<tir::PrimFunc>("main"), 0, 2);
}

/// One statement in loops: where it stores and what it adds up.
std::string nest(const std::string& rows, const std::string& columns, const std::string& store,
                 const std::string& value) {
  return "        for i in " + rows + ":\n            for j in " + columns + ":\n                " +
         store + " = " + value + "\n";
}

TEST(InPlace, ElementByElement) {
  EXPECT_TRUE(may_share(kernel(nest("range(6)", "range(8)", "b[i, j]", "a[i, j] + c[i, j]"))));
  EXPECT_TRUE(may_share(kernel(nest("range(3)", "range(8)", "b[i * 2, j]", "a[i * 2, j]"))));
  EXPECT_TRUE(may_share(kernel(
      nest("range(12)", "range(4)", "b[i // 2, i % 2 * 4 + j]", "a[i // 2, i % 2 * 4 + j]"))));
}

TEST(InPlace, NotWhereAnElementIsReadAfterItWasStored) {
  EXPECT_FALSE(may_share(kernel(nest("range(6)", "range(8)", "b[i, j]", "a[5 - i, j]"))));
  EXPECT_FALSE(may_share(kernel(nest("range(6)", "range(7)", "b[i, j]", "a[i, j + 1]"))));
  // Tiles that overlap store some elements twice.
  EXPECT_FALSE(
      may_share(kernel(nest("range(6)", "range(8)", "b[i, T.min(j, 6)]", "a[i, T.min(j, 6)]"))));
  EXPECT_FALSE(may_share(
      kernel(nest("range(6)", "range(12)", "b[i, j - j // 4 * 2]", "a[i, j - j // 4 * 2]"))));
  // Stored before, as the start of a sum.
  EXPECT_FALSE(may_share(kernel(
      "        for i in range(6):\n            for j in range(8):\n                b[i, j] = "
      "T.float32(0)\n                b[i, j] = b[i, j] + a[i, j]\n")));
  // Each element once in each round, but there are several rounds.
  EXPECT_FALSE(may_share(
      kernel("        for k in range(2):\n            for i in range(6):\n                for j in "
             "range(8):\n                    b[i, j] = a[i, j] + T.float32(1)\n")));
}

TEST(InPlace, NotWhereItCannotBeTold) {
  // What memory holds decides which element it is.
  EXPECT_FALSE(may_share(kernel(nest("range(6)", "range(8)", "b[i, T.Cast(\"int32\", c[0, 0]) + j]",
                                     "a[i, T.Cast(\"int32\", c[0, 0]) + j]"))));
  // The input is written, and a view of the output.
  EXPECT_FALSE(may_share(kernel(nest("range(6)", "range(8)", "b[i, j]", "a[i, j]") +
                                "        a[0, 0] = T.float32(0)\n")));
  EXPECT_FALSE(may_share(kernel(
      "        flat = T.decl_buffer((48,), \"float32\", data=b.data)\n        for i in range(48):\n"
      "            flat[i] = a[i // 8, i % 8]\n")));
}

TEST(InPlace, StoresAtPlacesThatAreDataBehindTheLastLoad) {
  const std::string copy = nest("range(6)", "range(8)", "b[i, j]", "a[i, j]");
  const std::string scatter =
      nest("range(2)", "range(8)", "b[T.Cast(\"int32\", c[i, 0]), j]", "c[i, j]");
  EXPECT_TRUE(may_share(kernel(copy + scatter)));
  EXPECT_FALSE(may_share(kernel(scatter + copy)));
  const std::string both = copy + scatter;
  std::string rounds = "        for r in range(2):\n";
  for (size_t at = 0; at < both.size();) {
    const size_t end = both.find('\n', at) + 1;
    rounds += "    " + both.substr(at, end - at);
    at = end;
  }
  EXPECT_FALSE(may_share(kernel(rounds)));
}

TEST(InPlace, RowsThatAreReadBeforeTheyAreStored) {
  const std::string sum =
      "        for i in range(6):\n            for j in range(8):\n                t[0] = "
      "t[0] + a[i, j]\n";
  const std::string store =
      "            for j in range(8):\n                b[i, j] = a[i, j] * t[0]\n";
  const std::string alloc =
      "        t = T.decl_buffer((1,), \"float32\")\n        t[0] = T.float32(0)\n";
  EXPECT_TRUE(may_share(kernel(alloc + sum + store)));
  EXPECT_FALSE(may_share(kernel(alloc + sum + store + "            t[0] = a[i, 0]\n")));
  EXPECT_FALSE(may_share(kernel(alloc + sum + "            t[0] = a[(i + 5) % 6, 0]\n" + store)));
}

/// Loops, indices and the order of statements at random: what is said to be safe gives the same.
std::string random_kernel(std::mt19937& random) {
  // Pairs of a loop's extent and the index that it makes, onto 6 rows or 8 columns.
  struct Axis {
    const char *extent, *index, *other;
  };
  static constexpr Axis kRows[] = {{"6", "i", "5 - i"},         {"6", "5 - i", "5 - i"},
                                   {"3", "i * 2", "i * 2 + 1"}, {"7", "T.min(i, 5)", "i % 6"},
                                   {"12", "i // 2", "i // 2"},  {"6", "i", "(i + 1) % 6"}};
  static constexpr Axis kColumns[] = {{"8", "j", "7 - j"},     {"8", "7 - j", "j"},
                                      {"4", "j * 2", "j + 4"}, {"10", "T.min(j, 7)", "j % 8"},
                                      {"4", "j", "j * 2"},     {"8", "j", "(j + 3) % 8"}};
  const Axis row = kRows[random() % 6], column = kColumns[random() % 6];
  const auto index = [&](bool is_odd) {
    const bool r = is_odd && random() % 3 == 0, c = is_odd && random() % 3 == 0;
    return fmt::format("[{}, {}]", r ? row.other : row.index, c ? column.other : column.index);
  };
  const std::string statement =
      fmt::format("b{} = a{} * T.float32(2) + c{}", index(false), index(true), index(true));
  const std::string again = fmt::format("t[0] = a{}", index(true));
  std::string body = "        t = T.decl_buffer((1,), \"float32\")\n";
  const std::string outer = fmt::format("        for i in range({}):\n", row.extent);
  const std::string inner = fmt::format("            for j in range({}):\n", column.extent);
  const std::string indent = "                ";
  switch (random() % 4) {
    case 0: body += outer + inner + indent + statement + "\n"; break;
    case 1: body += outer + inner + indent + again + "\n" + indent + statement + "\n"; break;
    case 2: body += outer + inner + indent + statement + "\n" + indent + again + "\n"; break;
    default:  // a sum of the row first
      body += outer + inner + indent + again + "\n" + inner + indent + statement + " + t[0]\n";
  }
  return kernel(body);
}

TEST(InPlace, RandomKernelsGiveTheSame) {
  const char* given = std::getenv("TENON_IN_PLACE_CASES");
  const int cases = given ? std::atoi(given) : 300;
  int shared = 0;
  for (int seed = 0; seed < cases; ++seed) {
    std::mt19937 random(static_cast<uint32_t>(seed));
    const std::string text = random_kernel(random);
    const IRModule module = script::parse_module(text);
    const auto plain = module.find<tir::PrimFunc>("main");
    if (!tir::may_share_memory(*plain, 0, 2)) continue;
    ++shared;
    IRModule changed;
    changed.set("main", tir::in_place(*plain, 0, 2));
    std::vector<float> a, c;
    for (int i = 0; i < 48; ++i) {
      a.push_back(static_cast<float>(i * 37 % 101));
      c.push_back(static_cast<float>(i * 53 % 89));
    }
    const auto tensor = [](const std::vector<float>& values) {
      return TensorData::of<float>(kFloat32, {6, 8}, values);
    };
    const std::vector<float> untouched(48, 0);
    const auto expected = interp::Interpreter(module).run_prim_func(
        "main", {tensor(a), tensor(c), tensor(untouched)});
    const auto got = interp::Interpreter(changed).run_prim_func("main", {tensor(a), tensor(c)});
    // Elements that the kernel does not store keep what they were.
    std::vector<float> ones(48, 1);
    const auto stored =
        interp::Interpreter(module).run_prim_func("main", {tensor(a), tensor(c), tensor(ones)});
    for (int64_t i = 0; i < 48; ++i) {
      const bool is_stored = expected[2]->at_float(i) == stored[2]->at_float(i);
      ASSERT_EQ(got[0]->at_float(i),
                is_stored ? expected[2]->at_float(i) : a[static_cast<size_t>(i)])
          << "seed " << seed << ", element " << i << "\n"
          << text;
    }
  }
  EXPECT_GT(shared, cases / 20);
  EXPECT_LT(shared, cases * 3 / 4);
}

}  // namespace
}  // namespace tenon
