// SPDX-License-Identifier: Apache-2.0
// Calls of library functions from compiled programs and from the interpreter, and the hooks of back
// ends. The libraries are C files that the system's compiler makes into ones.
#include "foreign_calls_test.h"
#include "tenon/backend/llvm/shared_library.h"
#include "tenon/driver/load.h"
#include "tenon/graph/extern_call.h"
#include "tenon/graph/external_modules.h"

namespace tenon {
namespace {

constexpr const char* kLibrary = R"(
#include <stddef.h>
#include <stdint.h>
int32_t scale(const float* x, float factor, float* y, int64_t n) {
  if (factor < 0) return 42;
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * factor;
  return 0;
}
/* The first part of a DLTensor. */
typedef struct { void* data; int32_t device, id, ndim; uint8_t code, bits; uint16_t lanes; int64_t* shape; int64_t* strides; uint64_t offset; } Tensor;
void sum_columns(Tensor* x, float* y) {
  const float* data = (const float*)x->data;
  for (int64_t j = 0; j < x->shape[1]; ++j) {
    y[j] = x->ndim == 2 && x->bits == 32 && x->code == 2 ? 0 : -1000;
    for (int64_t i = 0; i < x->shape[0]; ++i) y[j] += data[i * x->strides[0] + j * x->strides[1]];
  }
}
void reverse(const float* x, float* y, void* memory, size_t n) {
  float* scratch = (float*)memory;
  for (size_t i = 0; i < n; ++i) scratch[i] = x[n - 1 - i];
  for (size_t i = 0; i < n; ++i) y[i] = scratch[i];
}
)";

class LibraryCallsTest : public ForeignCallsTest {
 protected:
  LibraryCallsTest() : ForeignCallsTest(kLibrary) {}

  static std::vector<Ref<TensorData>> tensors(const std::vector<std::vector<float>>& values,
                                              const std::vector<std::vector<int64_t>>& shapes) {
    std::vector<Ref<TensorData>> out;
    for (size_t i = 0; i < values.size(); ++i) out.push_back(tensor(values[i], shapes[i]));
    return out;
  }
  std::vector<float> run(const IRModule& module, const std::vector<Ref<TensorData>>& inputs) {
    const LoweredModule lowered = lower(module, request());
    return floats(*compiled(link(generate(lowered, request()), libraries_))->run(inputs).at(0));
  }
  std::vector<float> interpret(const IRModule& module, const std::vector<Ref<TensorData>>& inputs) {
    return floats(*interpreted(module, libraries_)->run(inputs).at(0));
  }
};

constexpr const char* kScale = R"(
@I.ir_module
class Module:
    @T.extern_func
    def scale(x: T.Buffer((n,), "float32"), factor: T.float32, y: T.Buffer((n,), "float32"), n: T.int64):
        T.func_attr({"effects": {"y": "out"}, "returns": "int32"})

    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        with R.dataflow():
            y = R.call_dps_packed(Module.scale, (x, R.prim_value(T.float32(FACTOR))), out_sinfo=R.Tensor((n,), "float32"))
            R.output(y)
        return y
)";

std::string with(std::string text, const std::string& mark, const std::string& value) {
  return text.replace(text.find(mark), mark.size(), value);
}

TEST_F(LibraryCallsTest, ScalarsAndSymbolicDimensions) {
  const IRModule module = parse(with(kScale, "FACTOR", "0.5"));
  const auto inputs = tensors({{1, 2, 3}}, {{3}});
  EXPECT_EQ(run(module, inputs), (std::vector<float>{0.5, 1, 1.5}));
  EXPECT_EQ(interpret(module, inputs), (std::vector<float>{0.5, 1, 1.5}));
}

TEST_F(LibraryCallsTest, ACodeOtherThanZeroStopsTheProgram) {
  const IRModule module = parse(with(kScale, "FACTOR", "-1.0"));
  const auto inputs = tensors({{1, 2, 3}}, {{3}});
  const std::string compiled = error_of([&] { run(module, inputs); });
  EXPECT_NE(compiled.find("library function `scale` failed with code 42"), std::string::npos)
      << compiled;
  EXPECT_NE(compiled.find("<script>:12"), std::string::npos) << compiled;  // the caller's place
  const std::string interpreted = error_of([&] { interpret(module, inputs); });
  EXPECT_NE(interpreted.find("library function `scale` failed with code 42"), std::string::npos)
      << interpreted;
}

TEST_F(LibraryCallsTest, ATensorCarriesItsStrides) {
  const IRModule module = parse(R"(
@I.ir_module
class Module:
    @T.extern_func
    def sum_columns(x: T.Buffer((m, n), "float32", strides=[r, c]), y: T.Buffer((n,), "float32")):
        T.func_attr({"c_types": {"x": "const DLTensor*"}, "effects": {"y": "out"}})

    @T.prim_func
    def sums(x: T.Buffer((3, 4), "float32"), y: T.Buffer((2,), "float32")):
        T.call_extern(Module.sum_columns, x[1:3, 1:3], y[0:2])

    @R.function
    def main(x: R.Tensor((3, 4), "float32")) -> R.Tensor((2,), "float32"):
        with R.dataflow():
            y = R.call_tir(Module.sums, (x,), out_sinfo=R.Tensor((2,), "float32"))
            R.output(y)
        return y
)");
  const auto inputs = tensors({{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}}, {{3, 4}});
  EXPECT_EQ(run(module, inputs), (std::vector<float>{14, 16}));
  EXPECT_EQ(interpret(module, inputs), (std::vector<float>{14, 16}));
}

TEST_F(LibraryCallsTest, ScratchIsPartOfThePlan) {
  const IRModule module = parse(R"(
@I.ir_module
class Module:
    @T.extern_func
    def reverse(x: T.Buffer((n,), "float32"), y: T.Buffer((n,), "float32"), scratch: T.Buffer((n * 4,), "uint8"), n: T.int64):
        T.func_attr({"effects": {"y": "out", "scratch": "scratch"}, "c_types": {"n": "size_t", "scratch": "void*"}})

    @R.function
    def main(x: R.Tensor((32,), "float32")) -> R.Tensor((32,), "float32"):
        with R.dataflow():
            a = R.call_dps_packed(Module.reverse, (x,), out_sinfo=R.Tensor((32,), "float32"))
            b = R.call_dps_packed(Module.reverse, (a,), out_sinfo=R.Tensor((32,), "float32"))
            c = R.call_dps_packed(Module.reverse, (b,), out_sinfo=R.Tensor((32,), "float32"))
            R.output(c)
        return c
)");
  std::vector<float> numbers, backwards;
  for (int i = 0; i < 32; ++i) {
    numbers.push_back(static_cast<float>(i));
    backwards.push_back(static_cast<float>(31 - i));
  }
  const auto inputs = tensors({numbers}, {{32}});
  EXPECT_EQ(run(module, inputs), backwards);
  EXPECT_EQ(interpret(module, inputs), backwards);
  // In the second call a, b and scratch are alive: three times 128 bytes.
  const LoweredModule lowered = lower(module, request());
  const auto main = lowered.pipeline.module.find("main");
  EXPECT_EQ(main->attrs.get<int64_t>("tenon.workspace_bytes"), 384);
  EXPECT_EQ(main->attrs.get<int64_t>("tenon.bound_bytes"), 384);
}

TEST_F(LibraryCallsTest, AMissingFunctionIsNamed) {
  const IRModule module = parse(R"(
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            y = R.call_dps_packed("expf", (x,), out_sinfo=R.Tensor((4,), "float32"))
            R.output(y)
        return y
)");
  // The C library has an expf, of another type: it is not taken.
  const std::string error = error_of([&] { run(module, tensors({{1, 2, 3, 4}}, {{4}})); });
  EXPECT_NE(error.find("`main` calls library function `expf`"), std::string::npos) << error;
  EXPECT_NE(error.find("`void expf(const float* x, float* output)`"), std::string::npos) << error;
  EXPECT_NE(error.find("--link"), std::string::npos) << error;
  EXPECT_NE(error.find("<script>:7"), std::string::npos) << error;
}

TEST_F(LibraryCallsTest, ASharedLibraryContainsWhatItWasLinkedWith) {
  const IRModule module = parse(with(kScale, "FACTOR", "2.0"));
  const LoweredModule lowered = lower(module, request());
  const std::string path = folder_.file("program.so");
  llvm_backend::write_shared_library(generate(lowered, request()), path, libraries_.get());
  const auto outputs = compiled(load_program(path))->run(tensors({{1, 2}}, {{2}}));
  EXPECT_EQ(floats(*outputs.at(0)), (std::vector<float>{2, 4}));
}

constexpr const char* kRegion = R"(
@I.ir_module
class Module:
    @R.function(private=True)
    def region(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        R.func_attr({"Compiler": "mine"})
        with R.dataflow():
            a = R.add(x, x)
            b = R.nn.relu(a)
            R.output(b)
        return b

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            y = Module.region(x)
            z = R.negative(y)
            R.output(z)
        return z
)";

TEST_F(LibraryCallsTest, ABackEndLowersARegionByTheRestOfThePipeline) {
  graph::Backend mine;
  mine.name = "mine";
  mine.unit = graph::Backend::Unit::kRegion;
  int lowered = 0;
  mine.lower = [&](IRModule module, const std::string& function,
                   const graph::BackendContext& context) {
    ++lowered;
    return context.lower(std::move(module), function);
  };
  CompileRequest with_backend = request();
  with_backend.backends = {mine};
  const LoweredModule result = lower(parse(kRegion), with_backend);
  const auto program = compiled(link(generate(result, with_backend), libraries_));
  EXPECT_EQ(floats(*program->run(tensors({{-1, 0, 1, 2}}, {{4}})).at(0)),
            (std::vector<float>{0, 0, -2, -4}));
  EXPECT_EQ(lowered, 1);
}

TEST_F(LibraryCallsTest, ABackEndGeneratesC) {
  graph::Backend mine;
  mine.name = "mine";
  mine.unit = graph::Backend::Unit::kRegion;
  mine.lower = [](IRModule module, const std::string& function,
                  const graph::BackendContext& context) {
    return context.lower(std::move(module), function);
  };
  std::vector<std::string> seen;
  mine.generate = [&](const IRModule&, const std::vector<std::string>& functions) {
    seen = functions;
    return graph::BackendCode{
        "void region(const float* x, float* y) {\n"
        "  for (int i = 0; i < 4; ++i) y[i] = x[i] > 0 ? 2 * x[i] : 0;\n"
        "}\n",
        ""};
  };
  CompileRequest with_backend = request();
  with_backend.backends = {mine};
  const LoweredModule result = lower(parse(kRegion), with_backend);
  EXPECT_EQ(seen, std::vector<std::string>{"region"});
  const auto program = compiled(link(generate(result, with_backend), open_libraries(result, {})));
  EXPECT_EQ(floats(*program->run(tensors({{-1, 0, 1, 2}}, {{4}})).at(0)),
            (std::vector<float>{0, 0, -2, -4}));
}

// A module whose artefact was generated by a back end elsewhere: it has the C source with it.
TEST_F(LibraryCallsTest, ArtefactsOfTheModuleAreLinked) {
  IRModule module = parse(R"(
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            y = R.call_dps_packed("twice", (x,), out_sinfo=R.Tensor((4,), "float32"))
            R.output(y)
        return y
)");
  graph::add_external_module(
      module,
      graph::ExternalModule::of_bytes(
          graph::ExternalModule::Kind::kC,
          "void twice(const float* x, float* y) { for (int i = 0; i < 4; ++i) y[i] = 2 * x[i]; }\n",
          {"twice"}, "mine"));
  // Its text, with the bytes beside it, is the same module.
  const std::string file = folder_.file("module.tvmscript");
  write_module(module, file);
  const IRModule read = load_module(file);
  EXPECT_TRUE(structural_equal(module, read));
  const auto inputs = tensors({{1, 2, 3, 4}}, {{4}});
  const std::vector<float> expected = {2, 4, 6, 8};
  const LoweredModule lowered = lower(read, request());
  // They came with a file: that is said, and asked for.
  EXPECT_THROW(open_libraries(lowered, {}), CompileError);
  constexpr auto kTrust = backend::Trust::kAnything;
  const auto libraries = open_libraries(lowered.pipeline.module, {}, kTrust);
  EXPECT_EQ(floats(*compiled(link(generate(lowered, request()), libraries))->run(inputs).at(0)),
            expected);
  EXPECT_EQ(floats(*interpreted(read, open_libraries(read, {}, kTrust))->run(inputs).at(0)),
            expected);
  // The same bytes each time.
  const std::string one = folder_.file("one.so"), two = folder_.file("two.so");
  llvm_backend::write_shared_library(generate(lowered, request()), one, libraries.get());
  const LoweredModule again = lower(load_module(file), request());
  llvm_backend::write_shared_library(generate(again, request()), two,
                                     open_libraries(again.pipeline.module, {}, kTrust).get());
  EXPECT_EQ(read_file(one), read_file(two));
  EXPECT_EQ(floats(*compiled(load_program(one))->run(inputs).at(0)), expected);
}

// A shared library in the module is written beside what is linked with it.
TEST_F(LibraryCallsTest, ASharedLibraryOfTheModuleGoesWithTheProgram) {
  const std::string source = folder_.file("thrice.c"), built = folder_.file("thrice.so");
  write_file(
      source,
      "void thrice(const float* x, float* y) { for (int i = 0; i < 4; ++i) y[i] = 3 * x[i]; }\n");
  backend::run_c_compiler({"-shared", "-fPIC", "-o", built, source}, "the test's library");
  IRModule module = parse(R"(
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            y = R.call_dps_packed("thrice", (x,), out_sinfo=R.Tensor((4,), "float32"))
            R.output(y)
        return y
)");
  graph::add_external_module(module,
                             graph::ExternalModule::of_bytes(graph::ExternalModule::Kind::kShared,
                                                             read_file(built), {"thrice"}, "mine"));
  const std::string path = folder_.file("with_library.so");
  {
    const LoweredModule lowered = lower(module, request());
    const auto libraries = open_libraries(lowered, {});
    llvm_backend::write_shared_library(generate(lowered, request()), path, libraries.get());
  }
  const auto outputs = compiled(load_program(path))->run(tensors({{1, 2, 3, 4}}, {{4}}));
  EXPECT_EQ(floats(*outputs.at(0)), (std::vector<float>{3, 6, 9, 12}));
}

TEST_F(LibraryCallsTest, AHookThatBreaksItsContractIsNamed) {
  graph::Backend mine;
  mine.name = "mine";
  mine.unit = graph::Backend::Unit::kRegion;
  mine.lower = [](IRModule module, const std::string&, const graph::BackendContext&) {
    return module;
  };
  CompileRequest with_backend = request();
  with_backend.backends = {mine};
  const std::string error = error_of([&] { lower(parse(kRegion), with_backend); });
  EXPECT_NE(error.find("back end `mine` made no PrimFunc of graph function `region`"),
            std::string::npos)
      << error;
}

}  // namespace
}  // namespace tenon
