// SPDX-License-Identifier: Apache-2.0
// Texts as people write them: sugar, both spellings, what is left out.
#include <gtest/gtest.h>

#include "tenon/script/parser.h"
#include "tenon/script/printer.h"
#include "tenon/tir/stmt.h"

namespace tenon::script {

static IRModule parse(const std::string& text) {
  try {
    return parse_module(text);
  } catch (const CompileError& error) {
    ADD_FAILURE() << error.what();
    return {};
  }
}

static std::string printed(const IRModule& module) { return print(module, {.header = false}); }

/// Both texts mean the same module.
static void expect_same(const std::string& a, const std::string& b) {
  const IRModule x = parse(a), y = parse(b);
  const auto difference = structural_difference(x, y);
  EXPECT_FALSE(difference) << difference->where << ": " << difference->message << "\n"
                           << printed(x) << printed(y);
}

static std::string in_function(const std::string& body) {
  return "@T.prim_func\ndef f(a: T.handle, n: T.int32):\n"
         "    A = T.match_buffer(a, (16, 16), \"float32\")\n" +
         body;
}

TEST(Parse, PythonAroundAModuleIsSkipped) {
  const IRModule module = parse(R"(# a test of something
import tvm
from tvm.script import ir as I, tir as T
try:
    x = f"{1:>3}" + $ + `?`
except Exception as e: pass

def test_it():
    @tvm.script.ir_module(check_well_formed=False)
    class Before:
        """what it does"""
        @T.prim_func(private=True)
        def main(A: T.Buffer((4,), "int32")) -> None:
            "a docstring"
            T.evaluate(A[0])
    assert Before["main"]
)");
  ASSERT_EQ(module.size(), 1u);
  EXPECT_TRUE(module.find("main")->is_private);
}

TEST(Parse, BothSpellings) {
  const std::string old_text = R"(
@I.ir_module
class M:
    @T.prim_func
    def f(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
        C = T.alloc_buffer((4, 4))
        for i, j in T.grid(4, 4):
            with T.block("c"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.block_attr({"k": 1})
                C[vi, vj] = A[vi, vj]
        for i, j in T.grid(4, 4):
            with T.block("b"):
                vi = T.axis.spatial(4, i)
                vj = T.axis.spatial(4, j)
                B[vi, vj] = C[vi, vj]
    @R.function
    def g(x: R.Tensor((4, 4), "float32"), o: R.Object) -> R.Object:
        y = R.call_tir(M.f, x, out_sinfo=R.Tensor((4, 4), "float32"))
        return y
)";
  std::string new_text = old_text;
  const auto replace = [&](const std::string& from, const std::string& to) {
    for (size_t at = new_text.find(from); at != std::string::npos;
         at = new_text.find(from, at + to.size()))
      new_text.replace(at, from.size(), to);
  };
  replace("T.alloc_buffer", "T.sblock_alloc_buffer");
  replace("T.block_attr", "T.sblock_attr");
  replace("T.block(", "tirx.sblock(");
  replace("T.axis.spatial", "T.axis.S");
  replace("out_sinfo", "out_ty");
  replace("R.Object", "relax.Any");
  replace("M.f", "cls.f");
  expect_same(old_text, new_text);
}

TEST(Parse, RegionsThatAreLeftOutAreFound) {
  const IRModule module = parse(R"(
@T.prim_func
def f(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8,), "float32")):
    for i, k in T.grid(8, 8):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]
)");
  const std::string text = printed(module);
  EXPECT_NE(text.find("T.reads(A[vi, vk])"), std::string::npos) << text;
  EXPECT_NE(text.find("T.writes(B[vi])"), std::string::npos) << text;
}

TEST(Parse, LiteralsTakeTheDtypeOfWhatTheyMeet) {
  expect_same(
      in_function("    A[n * 2, 8 * 2 - 1] = A[0, n // 2] * 2 + 1.5\n"),
      in_function("    A[n * T.int32(2), 15] = A[0, n // 2] * T.float32(2) + T.float32(1.5)\n"));
  expect_same(
      in_function("    A[0, 0] = T.max(A[0, 0], 0)\n    A[n, 1] += 1\n"),
      in_function(
          "    A[0, 0] = T.max(A[0, 0], T.float32(0))\n    A[n, 1] = A[n, 1] + T.float32(1)\n"));
  // A wider integer wins, as in TVM.
  expect_same(in_function("    T.evaluate(n + T.int64(1))\n"),
              in_function("    T.evaluate(T.Cast(\"int64\", n) + T.int64(1))\n"));
}

TEST(Parse, Sugar) {
  expect_same(
      in_function(
          "    for i in T.serial(0, n):\n        for j in range(2, 6):\n            A[i, j] = 0\n"),
      in_function("    for i in range(n):\n        for j in T.serial(2, 6):\n            A[i, j] = "
                  "T.float32(0)\n"));
  expect_same(
      in_function("    A[0, 0:16] = A[1, 0:16] * 2.0\n"),
      in_function(
          "    A[0, T.Ramp(0, 1, 16)] = A[1, T.Ramp(0, 1, 16)] * T.Broadcast(T.float32(2), 16)\n"));
  expect_same(in_function("    A[0, 0:16:2] = A[1, 0:8]\n"),
              in_function("    A[0, T.Ramp(0, 2, 8)] = A[1, 0:8]\n"));
  expect_same(
      in_function("    if n > 1 and n < 4:\n        A[0, 0] = 1\n    elif n == 8:\n        A[0, 0] "
                  "= 2\n    else:\n        return\n"),
      in_function("    if T.And(n > 1, n < 4):\n        A[0, 0] = 1\n    else:\n        if n == "
                  "8:\n            A[0, 0] = 2\n        else:\n            T.ret()\n"));
  expect_same(
      in_function(
          "    x = A[0, 0] + 1.0\n    T.attr(0, \"key\", 1)\n    A[0, 1] = x\n    A[0, 2] = x\n"),
      in_function("    x: T.float32 = A[0, 0] + 1.0\n    with T.attr(0, \"key\", 1):\n        A[0, "
                  "1] = x\n        A[0, 2] = x\n"));
  expect_same(
      in_function("    p = T.allocate([16], \"float32\", \"local\")\n    q = T.decl_buffer((4, 4), "
                  "\"float32\", data=p, scope=\"local\")\n    q[0, 1] = p[3]\n"),
      in_function(
          "    p = T.decl_buffer([16], \"float32\", scope=\"local\")\n    with T.decl_buffer((4, "
          "4), data=p.data, scope=\"local\") as q:\n        q[0, 1] = p[3]\n"));
  expect_same(
      in_function("    for i in range(4):\n        if True:\n            A[i, 0] = 1.0 if i < 2 "
                  "else 3.0\n"),
      in_function("    for i in range(4):\n        A[i, 0] = T.if_then_else(i < 2, "
                  "T.float32(1), T.float32(3))\n"));
}

TEST(Parse, TensorOperators) {
  expect_same(R"(
@R.function
def f(x: R.Tensor(("n", 4), "float32"), y: R.Tensor((4,), "float32")):
    return -x * 2 + y / R.const(3.0, "float32")
)",
              R"(
@R.function
def f(x: R.Tensor(("n", 4), "float32"), y: R.Tensor((4,), "float32")):
    a = R.negative(x)
    b = R.multiply(a, R.const(2, "float32"))
    c = R.divide(y, R.const(3, "float32"))
    d = R.add(b, c)
    return d
)");
}

TEST(Parse, TypesAreInferred) {
  const IRModule module = parse(R"(
@I.ir_module
class M:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 8), "float32")):
        with R.dataflow():
            y = R.matmul(x, w)
            z = R.permute_dims(y, [1, 0])
            a, b = R.split(z, 2)
            c = cls.other(a)
            R.output(a, c)
        return (a, c)
    @R.function
    def other(x: R.Tensor((4, "n"), "float32")) -> R.Tensor((3,), "int8"):
        return R.const([1, 2, 3], "int8")
)");
  const std::string text = printed(module);
  EXPECT_NE(text.find("z: R.Tensor((8, n), dtype=\"float32\") = R.permute_dims(y, axes=[1, 0])"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("a: R.Tensor((4, n), dtype=\"float32\")"), std::string::npos) << text;
  EXPECT_NE(text.find("c: R.Tensor((3,), dtype=\"int8\") = cls.other(a)"), std::string::npos)
      << text;
  EXPECT_NE(text.find("R.output(a, c)"), std::string::npos) << text;
}

TEST(Parse, CallTirArguments) {
  const std::string text = R"(@I.ir_module
class M:
    @T.prim_func
    def kernel(A: T.Buffer((4,), "float32"), b: T.Buffer((), "float32"), n: T.int32, x: T.float32):
        T.evaluate(n)

    @T.prim_func
    def main(A: T.Buffer((4, 4), "float32"), B: T.Buffer((2,), "float32"), C: T.Buffer((4,), "float32")):
        cls = M
        T.call_tir(cls.kernel, A[1, 0:4], B[1], 3, B[0])
        T.call_tir(cls.kernel, C, B[0], 4, C[0] + T.float32(1.0), annotations={"k": [1, 2]})
)";
  EXPECT_EQ(print(parse(text), {.header = false, .module_name = "M"}), text);
}

TEST(Parse, EveryNodeKnowsItsPlace) {
  const auto file = std::make_shared<const SourceFile>(
      SourceFile{"m.py", in_function("    A[n, 1] = A[0, n] * 2.0\n")});
  const IRModule module = parse_module(file);
  const auto function = module.find<tir::PrimFunc>("f");
  EXPECT_EQ(function->origin.str(), "m.py:2:5");
  const auto* store = function->body.as<tir::BufferStore>();
  ASSERT_TRUE(store);
  EXPECT_EQ(store->origin.str(), "m.py:4:5");
  EXPECT_EQ(store->value->origin.str(), "m.py:4:15");
  EXPECT_EQ(store->value->origin->length, 13u);
}

TEST(Parse, NamesAndNumbersOfOneModuleAmongSeveral) {
  const std::string text = R"(
@I.ir_module
class Before:
    pass
@I.ir_module
class After:
    I.module_attrs({"a": [1, -2, 0.5, True, None], "f": float("inf"), "t": T.dtype("int8x4")})
)";
  const auto file = std::make_shared<const SourceFile>(SourceFile{"m.py", text});
  const IRModule after = parse_module(file, {.module_name = "After"});
  EXPECT_EQ(after.attrs.find("a")->str(), "[1, -2, 0.5, True, None]");
  EXPECT_EQ(*after.attrs.get<DType>("t"), kInt8.with_lanes(4));
  EXPECT_EQ(parse_module(file, {.module_name = "Before"}).size(), 0u);
}

}  // namespace tenon::script
