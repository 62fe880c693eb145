// SPDX-License-Identifier: Apache-2.0
// What a library function is told beside tensors: attributes of the operators that a call stands
// for, in scalars, arrays, structs and texts. Native, in the interpreter and in C.
#include "foreign_calls_test.h"
#include "tenon/driver/c_program.h"

namespace tenon {
namespace {

// Writes all that it is told into its output.
constexpr const char* kLibrary = R"(
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
typedef struct {
  bool flag; int64_t groups; int8_t pads[3]; double alpha; int32_t strides[2]; float beta;
} conv_params;
int32_t conv(const float* x, const float* w, float* y, int32_t h, const int64_t pads[4],
             uint8_t total, const char* layout, const conv_params* p, double slope) {
  const float told[] = {(float)h, (float)pads[0], (float)pads[1], (float)pads[2], (float)pads[3],
                        total, layout && !strcmp(layout, "channels first"), (float)p->flag,
                        (float)p->groups, p->pads[0], p->pads[1], p->pads[2], (float)p->alpha,
                        (float)p->strides[0], (float)p->strides[1], p->beta, (float)slope};
  (void)x; (void)w;
  memcpy(y, told, sizeof told);
  return 0;
}
)";

constexpr const char* kModule = R"(
@I.ir_module
class Module:
    @T.extern_func
    def conv_leaky(
        x: T.Buffer(("n", "c", "h", "w"), "float32"), weight: T.Buffer(("o", "c", "kh", "kw"), "float32"),
        y: T.Buffer(("n", "o", "oh", "ow"), "float32"), h: T.int32, pads: T.Array(4, "int64"), total: T.uint8,
        layout: T.handle,
        p: T.Struct("conv_params", flag="bool", groups="int64", pads="int8[3]", alpha="float64", strides="int32[2]", beta="float32"),
        slope: T.float64,
    ):
        T.func_attr({"symbol": "conv", "effects": {"y": "out"}, "returns": "int32", "c_types": {"layout": "const char*"},
                     "args": {"pads": "conv.padding", "total": "conv.padding[0] + padding[1] * oh + 200", "layout": "data_layout",
                              "p": {"flag": "strides[0] == 2", "pads": [1, "-n", "c - 5"], "beta": "2 * leakyrelu.alpha"},
                              "slope": "alpha"},
                     "tables": {"layout": {"NCHW": "channels first"}}})

    @R.function(private=True)
    def composite(x: R.Tensor((1, 3, 8, 8), "float32"), w: R.Tensor((4, 3, 3, 3), "float32")) -> R.Tensor((1, 4, 3, 4), "float32"):
        R.func_attr({"Composite": "toy.conv_leaky", "labels": {"conv": 0}})
        with R.dataflow():
            c = R.nn.conv2d(x, w, strides=[2, 2], padding=[0, 1, 0, 0])
            y = R.nn.leakyrelu(c, alpha=0.25)
            R.output(y)
        return y

    @R.function
    def main(x: R.Tensor((1, 3, 8, 8), "float32"), w: R.Tensor((4, 3, 3, 3), "float32")) -> R.Tensor((1, 4, 3, 4), "float32"):
        with R.dataflow():
            y = Module.composite(x, w)
            R.output(y)
        return y
)";

class SignatureArgumentsTest : public ForeignCallsTest {
 protected:
  SignatureArgumentsTest() : ForeignCallsTest(kLibrary) { model_.call_by_name = {"toy"}; }

  static const std::vector<float>& told() {
    static const std::vector<float> kTold = {8, 0,  1,  0,    0, 203, 1,   1,   1,
                                             1, -1, -2, 0.25, 2, 2,   0.5, 0.25};
    return kTold;
  }
  static std::vector<float> first(const TensorData& tensor) {
    std::vector<float> all = floats(tensor);
    all.resize(told().size());
    return all;
  }
  static std::vector<Ref<TensorData>> inputs() {
    return {tensor(std::vector<float>(192), {1, 3, 8, 8}),
            tensor(std::vector<float>(108), {4, 3, 3, 3})};
  }
  CompileRequest request_of(const std::string& target) const {
    CompileRequest out = request(target);
    out.first = model_.passes();
    return out;
  }

  ModelOptions model_;
};

TEST_F(SignatureArgumentsTest, NativeCode) {
  const LoweredModule lowered = lower(parse(kModule), request_of("native"));
  const auto program = compiled(link(generate(lowered, request_of("native")), libraries_));
  EXPECT_EQ(first(*program->run(inputs()).at(0)), told());
}

TEST_F(SignatureArgumentsTest, TheInterpreterCallsTheLibrary) {
  IRModule module = parse(kModule);
  for (const Pass& pass : model_.passes()) module = pass.run(std::move(module), pass.options);
  EXPECT_EQ(first(*interpreted(module, libraries_)->run(inputs()).at(0)), told());
}

TEST_F(SignatureArgumentsTest, CFillsArraysAndStructs) {
  LoweredModule lowered = lower(parse(kModule), request_of("c"));
  const c_backend::Program program = generate_c(lowered, request_of("c"), {});
  const auto ran = compiled(compile_c(program, request_of("c"), lowered, libraries_));
  EXPECT_EQ(first(*ran->run(inputs()).at(0)), told());
  EXPECT_NE(
      program.header.find("typedef struct {\n  bool flag;\n  int64_t groups;\n  int8_t pads[3];\n"
                          "  double alpha;\n  int32_t strides[2];\n  float beta;\n} conv_params;\n"
                          "int32_t conv(const float* x, const float* weight, float* y, int32_t h, "
                          "const int64_t* pads, uint8_t total, const char* layout, const "
                          "conv_params* p, double slope);"),
      std::string::npos)
      << program.header;
  EXPECT_NE(program.source.find("(const int64_t[]){0, 1, 0, 0}, 203, \"channels first\", &(const "
                                "conv_params){.flag = 1, .groups = 1, .pads = {1, -1, -2}, "),
            std::string::npos)
      << program.source;
}

TEST_F(SignatureArgumentsTest, OneStructHasOneDefinition) {
  std::string text = kModule;
  const auto replace = [](std::string& in, const std::string& was, const std::string& is) {
    in.replace(in.find(was), was.size(), is);
  };
  replace(text, "y = Module.composite(x, w)",
          "a = Module.composite(x, w)\n            b = Module.other(x, w)\n"
          "            y = R.add(a, b)");
  const size_t from = text.find("    @T.extern_func"),
               to = text.find("    @R.function\n    def main");
  std::string again = text.substr(from, to - from);
  replace(again, "def conv_leaky", "def conv_other");
  replace(again, "toy.conv_leaky", "toy.conv_other");
  replace(again, "def composite", "def other");
  replace(again, "\"symbol\": \"conv\"", "\"symbol\": \"conv2\"");
  replace(again, "beta=\"float32\"", "beta=\"float64\"");
  text.insert(to, again);
  LoweredModule lowered = lower(parse(text), request_of("c"));
  const std::string error = error_of([&] { generate_c(lowered, request_of("c"), {}); });
  EXPECT_NE(error.find("struct `conv_params` of library function `conv2` has other members than "
                       "where another function takes it"),
            std::string::npos)
      << error;
}

}  // namespace
}  // namespace tenon
