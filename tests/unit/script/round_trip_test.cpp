// SPDX-License-Identifier: Apache-2.0
// What is printed reads back structurally equal, and prints the same again.
#include <gtest/gtest.h>

#include "modules.h"
#include "tenon/script/parser.h"

namespace tenon::script {

static void expect_round_trip(const IRModule& module) {
  ConstantStore constants;
  PrintOptions options;
  options.constants = &constants;
  const std::string text = print(module, options);
  IRModule again;
  try {
    again = parse_module(text, {.constants = &constants});
  } catch (const CompileError& error) {
    FAIL() << error.what() << "\n" << text;
  }
  const auto difference = structural_difference(module, again);
  EXPECT_FALSE(difference) << difference->where << ": " << difference->message << "\n" << text;
  EXPECT_EQ(print(again, options), text);
}

TEST(RoundTrip, BlocksUnderARoot) {
  IRModule module;
  module.set("main", matmul(int64(4), int64(8), int64(3)));
  const auto n = Var::size("n"), m = Var::size("m");
  module.set("symbolic", matmul(n, int64(8), m));
  module.attrs.set("target", "llvm -mcpu=haswell");
  expect_round_trip(module);
}

TEST(RoundTrip, LoweredStatements) {
  IRModule module;
  module.set("lowered", lowered());
  module.set("kernel.1", make<ExternFunc>("k"));
  expect_round_trip(module);
}

/// Parses `text`, expects it back when printed (`text` is in the printer's own form), and equality.
static void expect_prints_back(const std::string& text) {
  ConstantStore constants;
  IRModule module;
  try {
    module = parse_module(text);
  } catch (const CompileError& error) {
    FAIL() << error.what();
  }
  PrintOptions options;
  options.header = false;
  EXPECT_EQ(print(module, options), text);
  expect_round_trip(module);
}

TEST(RoundTrip, GraphFunctions) {
  expect_prints_back(R"(@I.ir_module
class Module:
    @T.prim_func(private=True)
    def scale(A: T.Buffer((T.int64(2), T.int64(4)), "float32"), B: T.Buffer((T.int64(2), T.int64(4)), "float32")):
        # with T.block("root"):
        for i, j in T.grid(T.int64(2), T.int64(4)):
            with T.block("scale"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi, vj])
                T.writes(B[vi, vj])
                B[vi, vj] = A[vi, vj] * T.float32(2.0)

    @R.function
    def main(x: R.Tensor(("n", 4), dtype="float32"), s: R.Shape(["m"]), w: R.Tensor((4, "m * 2"), dtype="float32"), p: R.Prim(value="n + 1"), f: R.Callable((R.Tensor,), R.Object, True)) -> R.Tensor(("n", "m * 2"), dtype="float32"):
        n = T.int64()
        m = T.int64()
        k = T.int64()
        R.func_attr({"num_input": 1})
        cls = Module
        with R.dataflow():
            lv: R.Tensor((2, k), dtype="float32") = R.match_cast(x, R.Tensor((2, k), dtype="float32"))
            lv1: R.Tensor((2, 4), dtype="float32") = R.call_tir(cls.scale, (lv,), out_sinfo=R.Tensor((2, 4), dtype="float32"))
            lv2: R.Tuple(R.Tensor((n, 4), dtype="float32"), R.Shape([n, 4])) = (x, R.shape([n, 4]))
            lv3: R.Tensor((n, 4), dtype="float32") = lv2[0]
            gv: R.Tensor((n, m * 2), dtype="float32") = R.matmul(lv3, w, out_dtype="void")
            gv1: R.Tensor((2, k), dtype="float32") = R.call_tir(cls.scale, (lv1,), out_sinfo=[R.Tensor((2, k), dtype="float32"), R.Tensor(dtype="int8", ndim=2)], tir_vars=R.shape([k, 3]))
            R.output(gv, gv1)
        c: R.Tensor((2, 2), dtype="float32") = R.const([[1.0, -0.0], [0.1, 1e-30]], "float32")
        d: R.Tensor((64, 3), dtype="int64") = R.const_splat(7, R.Tensor((64, 3), dtype="int64"))
        e: R.Tensor((), dtype="bool") = R.const(True, "bool")
        if e:
            lv4: R.Tensor((2, 2), dtype="float32") = R.exp(c)
            b: R.Tensor((2, 2), dtype="float32") = lv4
        else:
            b: R.Tensor((2, 2), dtype="float32") = c
        o: R.Object = R.call_packed("vm.print", b, R.str("a\"b"), R.prim_value(n), sinfo_args=(R.Object,))
        q: R.Object = R.call_dps_packed("sym", (b, c), out_sinfo=R.Tensor((2, 2), dtype="float16"))
        r: R.Object = f(b)
        t: R.Object = cls.scale
        @R.function(pure=False)
        def inner(y: R.Tensor(("n", "n1"), dtype="float32")) -> R.Tuple:
            n1 = T.int64()
            return R.tuple()
        return gv
)");
}

// `n * 2` in the first parameter, `n` itself in the second.
TEST(RoundTrip, DimensionsUsedBeforeTheirDefinition) {
  expect_prints_back(R"(@I.ir_module
class Module:
    @T.prim_func
    def kernel(var_A: T.handle, var_B: T.handle):
        n = T.int64()
        A = T.match_buffer(var_A, (n * 2,), "float32")
        B = T.match_buffer(var_B, (n,), "float32")
        B[0] = A[n]

    @R.function
    def main(x: R.Tensor(("n * 2",), dtype="float32"), y: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
        n = T.int64()
        return y
)");
  const IRModule module = parse_module(R"(
@R.function
def main(x: R.Tensor(("n * 2",), "float32"), y: R.Tensor(("n",), "float32")):
    return y
)");
  IRModule renewed;
  renewed.set("main", renew_definitions(module.find("main")));
  expect_round_trip(renewed);
  EXPECT_EQ(print(renewed), print(module));
}

// Regions are found here, not given: of a view at an int64 place with an int32 extent, and of
// indices of both widths.
TEST(RoundTrip, RegionsOfPlacesAndExtentsOfTwoWidths) {
  expect_round_trip(parse_module(R"(
@T.prim_func
def kernel(pA: T.handle, pB: T.handle):
    n = T.int64()
    A = T.match_buffer(pA, (n, 2), "float32")
    B = T.match_buffer(pB, (n, n), "float32")
    s0 = T.int32()
    s1 = T.int32()
    for i in range(n):
        with T.block("column"):
            v = T.axis.spatial(n, i)
            column = T.match_buffer(B[0:n, v:v + 1], (n, 1), "float32", strides=[s0, s1], offset_factor=1)
            for k in range(n):
                column[k, 0] = A[k, 1]
    for i in range(2):
        with T.block("row"):
            w = T.axis.spatial(2, i)
            for k in range(n):
                B[0, k] = A[T.min(w, n - 1), w] + A[k, T.min(k, 2 - 1)]
)"));
}

}  // namespace tenon::script
