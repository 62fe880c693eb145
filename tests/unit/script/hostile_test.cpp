// SPDX-License-Identifier: Apache-2.0
// Damaged and hostile texts and files give errors, never crashes.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <random>

#include "modules.h"
#include "tenon/script/constant_file.h"
#include "tenon/script/constants.h"
#include "tenon/script/parser.h"

namespace tenon::script {

static std::string sample() {
  IRModule module;
  const auto n = Var::size("n");
  module.set("matmul", matmul(n, int64(8), int64(3)));
  module.set("lowered", lowered());
  module.set("kernel.1", make<ExternFunc>("k"));
  return print(module) + R"(
    @R.function
    def main(x: R.Tensor(("n", 4), dtype="float32"), c: R.Tensor((), dtype="bool")) -> R.Tensor(("n", 4), dtype="float32"):
        n = T.int64()
        with R.dataflow():
            a = R.add(x, R.const([[1.0, 2.0, 3.0, 4.0]], "float32"))
            b = R.call_dps_packed("f", (a,), out_sinfo=R.Tensor((n, 4), dtype="float32"))
            R.output(b)
        if c:
            d = R.exp(b)
        else:
            d = (x, b)[0]
        return d
)";
}

// Whatever it is given, the parser returns or throws CompileError.
static void read(const std::string& text) {
  try {
    const IRModule module = parse_module(text);
    print(module);
  } catch (const CompileError& error) {
    EXPECT_FALSE(error.diagnostics().empty());
  }
}

TEST(Hostile, MutatedTexts) {
  const std::string text = sample();
  ASSERT_NO_THROW(parse_module(text));
  std::mt19937 random(7);
  const auto pick = [&](size_t n) { return random() % n; };
  const std::vector<std::string> pieces = {
      "(",    ")",    "[",        "]",  "{",     ":",  ",",   "=",    "-", "0", "T.",
      "\n",   "    ", "\"",       "x",  "1e999", "**", "cls", "None", "A", "n", "/",
      "not ", "()",   "T.int64(", "vi", "R.",    "*",  "\\",  "#",    "\t"};
  for (int i = 0; i < 1500; ++i) {
    std::string mutated = text;
    for (size_t k = 0; k <= pick(3); ++k) {
      const size_t at = pick(mutated.size());
      switch (pick(4)) {
        case 0: mutated.erase(at, 1 + pick(12)); break;
        case 1: mutated.insert(at, pieces[pick(pieces.size())]); break;
        case 2: mutated[at] = static_cast<char>(random() & 0xff); break;
        default: {  // a piece of the text somewhere else
          const size_t from = pick(mutated.size());
          const std::string moved = mutated.substr(from, pick(40));
          mutated.insert(at, moved);
        }
      }
    }
    read(mutated);
  }
  for (size_t end = 0; end < text.size(); end += 37) read(text.substr(0, end));
}

TEST(Hostile, DeepAndLongTexts) {
  const std::string head = "@T.prim_func\ndef f(A: T.Buffer((4,), \"float32\"), n: T.int32):\n";
  const auto repeat = [](const std::string& piece, int times) {
    std::string out;
    for (int i = 0; i < times; ++i) out += piece;
    return out;
  };
  read(head + "    A[0] = " + repeat("(", 100000));
  read(head + "    A[0] = " + repeat("-", 100000) + "1\n");
  read(head + "    A[0] = " + repeat("not ", 100000) + "1\n");
  read(head + "    A[0] = 1.0" + repeat(" + A[0]", 100000) + "\n");
  read(head + "    A[0] = " + repeat("A[0] if n < 1 else ", 100000) + "1.0\n");
  read(head + "    A[0] = A" + repeat("[0]", 100000) + "\n");
  read(head + "    A[0] = A" + repeat(".data", 100000) + "\n");
  read(head + "    T.evaluate(" + repeat("T.max(n, ", 10000) + "\n");
  read(head + repeat("    if n < 1:\n        A[0] = 1.0\n    el", 5000) +
       "if n < 1:\n        A[0] = 1.0\n");
  std::string nested = head, indent = "    ";
  for (int i = 0; i < 2000; ++i) {
    nested += indent + "for i in range(2):\n";
    indent += " ";
  }
  read(nested + indent + "A[0] = 1.0\n");
  read(head + "    x = T.int64(1) " + repeat("** 9 ", 1000) + "\n");
  read(head + "    A[2 ** 127 * 2 ** 127] = 1.0\n");
  read(
      "@R.function\ndef f(x: R.Tensor((4611686018427387904, 4611686018427387904), \"float32\")):\n"
      "    return R.const_splat(1, R.Tensor((4611686018427387904, 8), \"float32\"))\n");
  // Long but flat is fine.
  const IRModule module = parse_module(head + repeat("    A[0] = A[1] + 1.0\n", 20000));
  EXPECT_EQ(module.find<tir::PrimFunc>("f")->body.as<tir::Seq>()->stmts.size(), 20000u);
}

TEST(ConstantFile, KeepsContentAndRefusesDamage) {
  ConstantStore store;
  store.add(TensorData::of<float>(kFloat32, {2, 3}, {1, 2, 3, 4, 5, 6}));
  store.add(TensorData::splat(kInt64, {1 << 20}, std::vector<std::byte>(8, std::byte{3})));
  store.add(TensorData::of<uint8_t>(kBool, {3}, {1, 0, 1}));
  store.add(TensorData::of<uint8_t>(kUInt8, {0, 4}, {}));
  const std::string path = testing::TempDir() + "constants_test.bin";
  write_constants(path, store);
  const ConstantStore again = read_constants(path);
  ASSERT_EQ(again.items().size(), 4u);
  for (const auto& data : store.items()) {
    const auto other = again.find(data->content_hash());
    ASSERT_TRUE(other);
    EXPECT_EQ(other->shape, data->shape);
    EXPECT_EQ(other->is_splat(), data->is_splat());
    EXPECT_EQ(
        reinterpret_cast<uintptr_t>(other->splat_element().data()) % (data->is_splat() ? 1 : 64),
        0u);
  }
  std::ifstream in(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  const auto refuses = [&](const std::string& damaged) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << damaged;
    try {
      read_constants(path);
      return false;
    } catch (const CompileError&) {
      return true;
    }
  };
  for (size_t end = 0; end < bytes.size(); end += 5)
    EXPECT_TRUE(refuses(bytes.substr(0, end))) << end;
  std::mt19937 random(3);
  for (int i = 0; i < 500; ++i) {
    std::string damaged = bytes;
    damaged[random() % 300] ^= static_cast<char>(1 << (random() % 8));
    refuses(damaged);  // padding may change without harm; nothing may crash
  }
  std::string content = bytes;
  const size_t at = content.find(std::string("\0\0\x80\x3f\0\0\0\x40", 8));  // 1.0f, 2.0f
  ASSERT_NE(at, std::string::npos);
  content[at] ^= 1;
  EXPECT_TRUE(refuses(content));
  EXPECT_THROW(read_constants("/nonexistent/constants"), CompileError);
}

// Text has one NaN: others go to the store, or would read back as that one.
TEST(Constants, KeepTheSignOfNaN) {
  for (const uint16_t bits : {uint16_t{0xfe00}, uint16_t{0x7e01}, uint16_t{0x7e00}}) {
    std::vector<std::byte> bytes(2);
    std::memcpy(bytes.data(), &bits, 2);
    const auto data = TensorData::owned(kFloat16, {1}, std::move(bytes));
    EXPECT_EQ(has_exact_literals(*data), bits == 0x7e00) << bits;
  }
}

TEST(RoundTrip, LargeConstantsThroughAFile) {
  const std::string text = R"(@R.function
def main(x: R.Tensor((64,), "float32")):
    a = R.add(x, R.const([)" +
                           [] {
                             std::string list = "0.5";
                             for (int i = 1; i < 64; ++i) list += ", " + std::to_string(i) + ".25";
                             return list;
                           }() +
                           R"(], "float32"))
    return a
)";
  const IRModule module = parse_module(text);
  ConstantStore store;
  PrintOptions options;
  options.constants = &store;
  const std::string out = print(module, options);
  EXPECT_NE(out.find("R.const_ref(\""), std::string::npos) << out;
  const std::string path = testing::TempDir() + "constants_round_trip.bin";
  write_constants(path, store);
  const ConstantStore read = read_constants(path);
  EXPECT_TRUE(structural_equal(parse_module(out, {.constants = &read}), module));
  EXPECT_THROW(parse_module(out), CompileError);
}

}  // namespace tenon::script
