// SPDX-License-Identifier: Apache-2.0
// Functions that are called by name: R.call_packed and its relatives, T.call_packed, and
// T.call_extern of functions that nothing declares. Compiled, interpreted and as C.
#include "../../targets/everywhere.h"
#include "foreign_calls_test.h"
#include "tenon/backend/llvm/shared_library.h"
#include "tenon/driver/c_program.h"
#include "tenon/runtime/registry.h"

namespace tenon {
namespace {

// As TVM's packed functions in C, with dlpack.h's tensors.
constexpr const char* kFunctions = R"(
#include <stdint.h>
typedef struct { void* data; int32_t device, id, ndim; uint8_t code, bits; uint16_t lanes; int64_t *shape, *strides; uint64_t offset; } Tensor;
typedef union { int64_t i; double f; void* p; const char* s; } Value;
static int64_t size_of(const Tensor* t) {
  int64_t n = 1;
  for (int32_t i = 0; i < t->ndim; ++i) n *= t->shape[i];
  return n;
}
int my_scale(Value* args, int* codes, int count, Value* ret, int* ret_codes, void* context) {
  const Tensor* x = args[0].p;
  const Tensor* y = ret[0].p;
  if (count != 2 || codes[0] != 7 || codes[1] != 2 || ret_codes[0] != 7 || context) return 100;
  for (int64_t i = 0; i < size_of(x); ++i) ((float*)y->data)[i] = ((float*)x->data)[i] * (float)args[1].f;
  return 0;
}
int my_apply(Value* args, int* codes, int count, Value* ret, int* ret_codes, void* context) {
  const Tensor* x = args[0].p;
  const Tensor* y = ret[0].p;
  (void)count; (void)ret_codes; (void)context;
  if (codes[1] != 11) return 101;
  int negates = args[1].s[0] == 'n';
  for (int64_t i = 0; i < size_of(x); ++i)
    ((float*)y->data)[i] = negates ? -((float*)x->data)[i] : ((float*)x->data)[i] + 1;
  return 0;
}
int my_split(Value* args, int* codes, int count, Value* ret, int* ret_codes, void* context) {
  const Tensor* x = args[0].p;
  (void)codes; (void)count; (void)context;
  if (ret_codes[0] != 7 || ret_codes[1] != 7) return 102;
  int64_t half = size_of(x) / 2;
  for (int64_t i = 0; i < half; ++i) {
    ((float*)((Tensor*)ret[0].p)->data)[i] = ((float*)x->data)[i];
    ((float*)((Tensor*)ret[1].p)->data)[i] = ((float*)x->data)[half + i];
  }
  return 0;
}
int my_add_to(Value* args, int* codes, int count, Value* ret, int* ret_codes, void* context) {
  const Tensor* x = args[0].p;
  const Tensor* y = args[1].p;
  (void)codes; (void)count; (void)ret; (void)ret_codes; (void)context;
  for (int64_t i = 0; i < size_of(x); ++i) ((float*)x->data)[i] += ((float*)y->data)[i];
  return 0;
}
int my_sum(Value* args, int* codes, int count, Value* ret, int* ret_codes, void* context) {
  const Tensor* x = args[0].p;
  (void)codes; (void)count; (void)context;
  ret[0].f = 0;
  for (int64_t i = 0; i < x->shape[0]; ++i) ret[0].f += ((float*)x->data)[x->strides ? i * x->strides[0] : i];
  ret_codes[0] = 2;
  return 0;
}
int fails(Value* args, int* codes, int count, Value* ret, int* ret_codes, void* context) {
  (void)args; (void)codes; (void)count; (void)ret; (void)ret_codes; (void)context;
  return 9;
}
double weigh(float* x, int32_t n, float factor) {
  double sum = 0;
  for (int32_t i = 0; i < n; ++i) sum += x[i] * factor;
  return sum;
}
)";

class PackedCallsTest : public ForeignCallsTest {
 protected:
  PackedCallsTest() : ForeignCallsTest(kFunctions) {}

  static Ref<TensorData> tensor(const std::vector<float>& values) {
    return ForeignCallsTest::tensor(values, {static_cast<int64_t>(values.size())});
  }
  std::vector<float> compile_and_run(const IRModule& module, const Ref<TensorData>& input,
                                     const std::string& target = "native") {
    const CompileRequest how = request(target);
    LoweredModule lowered = lower(module, how);
    if (how.target.kind == "c") {
      const c_backend::Program program = generate_c(lowered, how, {});
      return floats(*compiled(compile_c(program, how, lowered, libraries_))->run({input}).at(0));
    }
    const auto program = generate(lowered, how, libraries_.get());
    return floats(*compiled(link(program, libraries_))->run({input}).at(0));
  }
  /// By every way there is.
  void expect(const std::string& text, const std::vector<float>& input,
              const std::vector<float>& output) {
    const IRModule module = parse(text);
    EXPECT_EQ(floats(*interpreted(module, libraries_)->run({tensor(input)}).at(0)), output);
    EXPECT_EQ(floats(*testing_targets::run_everywhere(module, {tensor(input)}, libraries_).at(0)),
              output);
  }
};

std::string graph(const std::string& body) {
  return R"(
@I.ir_module
class Module:
    @R.function(pure=False)
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
)" + body;
}

TEST_F(PackedCallsTest, ResultsArePlannedMemory) {
  expect(graph(R"(
        a = R.call_packed("my.scale", x, R.prim_value(T.float32(0.5)), sinfo_args=(R.Tensor((4,), "float32"),))
        b = R.add(a, a)
        c = R.call_pure_packed("my.apply", b, R.str("negate"), sinfo_args=(R.Tensor((4,), "float32"),))
        return c
)"),
         {1, 2, 3, 4}, {-1, -2, -3, -4});
}

TEST_F(PackedCallsTest, ATupleIsSeveralResults) {
  expect(graph(R"(
        parts = R.call_packed("my.split", x, sinfo_args=(R.Tuple(R.Tensor((2,), "float32"), R.Tensor((2,), "float32")),))
        a = parts[0]
        b = parts[1]
        y = R.concat((b, a), axis=0)
        return y
)"),
         {1, 2, 3, 4}, {3, 4, 1, 2});
}

TEST_F(PackedCallsTest, InPlaceChangesNoValueOfTheGraph) {
  // `x` is read after it, so the function gets a copy; `a` is not.
  expect(graph(R"(
        a = R.call_inplace_packed("my.add_to", x, x, inplace_indices=[0], sinfo_args=(R.Tensor((4,), "float32"),))
        b = R.multiply(a, x)
        c = R.call_inplace_packed("my.add_to", b, x, inplace_indices=[0], sinfo_args=(R.Tensor((4,), "float32"),))
        return c
)"),
         {1, 2, 3, 4}, {3, 10, 21, 36});
}

TEST_F(PackedCallsTest, FromKernelsWithRegionsAndScalarResults) {
  expect(R"(
@I.ir_module
class Module:
    @T.prim_func
    def sums(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("sum"):
                v = T.axis.spatial(4, i)
                T.reads(x[0:v + 1])
                T.writes(y[v])
                y[v] = T.Cast("float32", T.call_packed("my_sum", x[0:v + 1], dtype="float64"))

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        with R.dataflow():
            y = R.call_tir(cls.sums, (x,), out_sinfo=R.Tensor((4,), "float32"))
            R.output(y)
        return y
)",
         {1, 2, 3, 4}, {1, 3, 6, 10});
}

TEST_F(PackedCallsTest, UndeclaredFunctionsOfC) {
  expect(R"(
@I.ir_module
class Module:
    @T.prim_func
    def weigh(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("weigh"):
                v = T.axis.spatial(4, i)
                T.reads(x[0:4])
                T.writes(y[v])
                y[v] = T.Cast("float32", T.call_extern("float64", "weigh", x.data, v + 1, T.float32(0.5)))
        T.evaluate(T.call_extern("int32", "printf", ""))

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        with R.dataflow():
            y = R.call_tir(cls.weigh, (x,), out_sinfo=R.Tensor((4,), "float32"))
            R.output(y)
        return y
)",
         {2, 4, 6, 8}, {1, 3, 6, 10});
}

TEST_F(PackedCallsTest, PrintfPrints) {
  const IRModule module = parse(R"(
@I.ir_module
class Module:
    @T.prim_func
    def show(x: T.Buffer((2,), "float32"), y: T.Buffer((2,), "float32")):
        for i in range(2):
            with T.block("show"):
                v = T.axis.spatial(2, i)
                y[v] = x[v]
                T.evaluate(T.call_extern("int32", "printf", "element %d is %.2f\n", v, x[v]))

    @R.function
    def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        cls = Module
        with R.dataflow():
            y = R.call_tir(cls.show, (x,), out_sinfo=R.Tensor((2,), "float32"))
            R.output(y)
        return y
)");
  const auto printed = [&](const auto& run) {
    testing::internal::CaptureStdout();
    run();
    std::fflush(stdout);
    return testing::internal::GetCapturedStdout();
  };
  const std::string expected = "element 0 is 1.50\nelement 1 is 2.50\n";
  const auto x = tensor({1.5f, 2.5f});
  EXPECT_EQ(printed([&] { interpreted(module, libraries_)->run({x}); }), expected);
  EXPECT_EQ(printed([&] { compile_and_run(module, x); }), expected);
  EXPECT_EQ(printed([&] { compile_and_run(module, x, "c"); }), expected);
}

TEST_F(PackedCallsTest, ACodeStopsTheProgram) {
  const IRModule module = parse(graph(R"(
        y = R.call_packed("fails", x, sinfo_args=(R.Tensor((4,), "float32"),))
        return y
)"));
  const auto x = tensor({1, 2, 3, 4});
  const std::string expected = "packed function `fails` failed with code 9";
  const std::string compiled = error_of([&] { compile_and_run(module, x); });
  EXPECT_NE(compiled.find(expected), std::string::npos) << compiled;
  EXPECT_NE(compiled.find("<script>:7"), std::string::npos) << compiled;  // the caller's place
  const std::string in_c = error_of([&] { compile_and_run(module, x, "c"); });
  EXPECT_NE(in_c.find(expected), std::string::npos) << in_c;
  const std::string shown = error_of([&] { interpreted(module, libraries_)->run({x}); });
  EXPECT_NE(shown.find(expected), std::string::npos) << shown;
}

constexpr const char* kRegistered = R"(
        y = R.call_packed("host.add", x, sinfo_args=(R.Tensor((4,), "float32"),))
        return y
)";

TEST_F(PackedCallsTest, AMissingFunctionIsNamedWhereItIsLinkedOrLoaded) {
  const IRModule module = parse(graph(kRegistered));
  const auto x = tensor({1, 2, 3, 4});
  const std::pair<const char*, const char*> named[] = {{"native", "packed function `host.add`"},
                                                       {"c", "library function `host_add`"}};
  for (const auto& [target, name] : named) {
    const std::string error = error_of([&] { compile_and_run(module, x, target); });
    EXPECT_NE(error.find(name), std::string::npos) << error;
    EXPECT_NE(error.find("<script>:7"), std::string::npos) << error;
    EXPECT_NE(error.find("--link"), std::string::npos) << error;
  }
  const std::string shown = error_of([&] { interpreted(module, libraries_)->run({x}); });
  EXPECT_NE(shown.find("packed function `host.add`, which is neither registered"),
            std::string::npos)
      << shown;
  // A shared library may be loaded where the function is.
  const std::string path = folder_.file("program.so");
  llvm_backend::write_shared_library(
      generate(lower(module, request()), request(), libraries_.get()), path, libraries_.get());
  const std::string loaded = error_of([&] { load_program(path); });
  EXPECT_NE(loaded.find("packed function `host.add`, which is neither linked in nor registered"),
            std::string::npos)
      << loaded;
}

TEST_F(PackedCallsTest, RegisteredFunctionsHaveTheirContext) {
  const IRModule module = parse(graph(kRegistered));
  float amount = 10;
  const auto add = [](TenonValue* args, int32_t*, int32_t, TenonValue* results, int32_t*,
                      void* context) -> int32_t {
    const auto* x = static_cast<const DLTensor*>(args[0].pointer);
    const auto* y = static_cast<const DLTensor*>(results[0].pointer);
    for (int64_t i = 0; i < x->shape[0]; ++i)
      static_cast<float*>(y->data)[i] =
          static_cast<const float*>(x->data)[i] + *static_cast<float*>(context);
    return 0;
  };
  runtime::register_packed("host.add", {add, &amount});
  const auto x = tensor({1, 2, 3, 4});
  const std::vector<float> expected = {11, 12, 13, 14};
  EXPECT_EQ(compile_and_run(module, x), expected);
  EXPECT_EQ(floats(*interpreted(module, libraries_)->run({x}).at(0)), expected);
  const std::string path = folder_.file("program.so");
  llvm_backend::write_shared_library(
      generate(lower(module, request()), request(), libraries_.get()), path, libraries_.get());
  const auto program = compiled(load_program(path));
  runtime::unregister_packed("host.add");
  EXPECT_EQ(floats(*program->run({x}).at(0)), expected);  // what is loaded keeps it
}

TEST_F(PackedCallsTest, EffectsAreKept) {
  // The first call's result is not used; the call is made, and made twice.
  int calls = 0;
  const auto count = [](TenonValue*, int32_t*, int32_t, TenonValue*, int32_t*,
                        void* context) -> int32_t {
    ++*static_cast<int*>(context);
    return 0;
  };
  runtime::register_packed("host.count", {count, &calls});
  const IRModule module = parse(graph(R"(
        _: R.Object = R.call_packed("host.count", x, sinfo_args=(R.Object,))
        _1: R.Object = R.call_packed("host.count", x, sinfo_args=(R.Object,))
        y = R.add(x, x)
        return y
)"));
  EXPECT_EQ(compile_and_run(module, tensor({1, 2, 3, 4})), (std::vector<float>{2, 4, 6, 8}));
  EXPECT_EQ(calls, 2);
  interpreted(module, libraries_)->run({tensor({1, 2, 3, 4})});
  EXPECT_EQ(calls, 4);
  runtime::unregister_packed("host.count");
}

TEST_F(PackedCallsTest, ADeclaredFunctionIsCheckedAgainst) {
  const std::string text = R"(
@I.ir_module
class Module:
    @T.extern_func
    def scale(x: T.Buffer((4,), "float32"), factor: T.float32, y: T.Buffer((4,), "float32")):
        T.func_attr({"symbol": "my.scale", "packed": True, "effects": {"y": "out"}})

    @R.function(pure=False)
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        y = R.call_packed("my.scale", x, R.prim_value(T.float32(3)), sinfo_args=(R.Tensor((4,), "float32"),))
        return y
)";
  expect(text, {1, 2, 3, 4}, {3, 6, 9, 12});
  std::string wrong = text;
  wrong.replace(wrong.find("x, R.prim_value(T.float32(3))"), 29, "x");
  const std::string error = error_of([&] { compile_and_run(parse(wrong), tensor({1, 2, 3, 4})); });
  EXPECT_NE(error.find("`my.scale` is called with 1 arguments for 1 outputs; it has 2 and 1"),
            std::string::npos)
      << error;
}

}  // namespace
}  // namespace tenon
