// SPDX-License-Identifier: Apache-2.0
// Headers of --include against the signatures that calls are made by, and what else the C target
// writes for calls.
#include "tenon/backend/c/prototypes.h"

#include <gtest/gtest.h>

#include "tenon/driver/c_program.h"
#include "tenon/driver/console.h"
#include "tenon/driver/executable.h"
#include "tenon/driver/model_options.h"
#include "tenon/driver/tensors.h"
#include "tenon/script/parser.h"

namespace tenon {
namespace {

constexpr const char* kHeader = R"(
/* A library. */
#ifndef TOY_H
#define TOY_H
#include <stdint.h>
#define API __attribute__((visibility("default")))
#ifdef __cplusplus
extern "C" {
#endif
typedef float toy_float;   // as they like it
typedef struct { int a; float b[2]; } toy_pair;
enum toy_mode { TOY_FAST, TOY_EXACT };

void dense(const toy_float *x, const float * restrict w, float y[], size_t n);
API int32_t checked(float *, float *out, long long n) __attribute__((nonnull));
static inline int toy_square(int x) { if (x) { return x * x; } return 0; }
extern void many(float const *x, void *scratch), other(int);
int variadic(const char *format, ...);
void pair(toy_pair p);
void tensors(const DLTensor *x, struct DLTensor *y);
#ifdef __cplusplus
}
#endif
#endif
)";

const c_backend::Prototype& find(const std::vector<c_backend::Prototype>& all,
                                 const std::string& name) {
  for (const c_backend::Prototype& one : all)
    if (one.name == name) return one;
  ADD_FAILURE() << "`" << name << "` was not read";
  return all.at(0);
}

TEST(Prototypes, SimpleDeclarationsAreRead) {
  const auto all = c_backend::read_prototypes(kHeader);
  using Types = std::vector<std::string>;
  EXPECT_EQ(find(all, "dense").types,
            (Types{"const float*", "const float* restrict", "float*", "size_t"}));
  EXPECT_EQ(find(all, "dense").result, "void");
  EXPECT_EQ(find(all, "dense").line, 14);
  EXPECT_EQ(find(all, "dense").text,
            "void dense(const toy_float* x, const float* restrict w, float y[], size_t n)");
  EXPECT_EQ(find(all, "checked").types, (Types{"float*", "float*", "long long"}));
  EXPECT_EQ(find(all, "toy_square").types, Types{"int"});
  EXPECT_EQ(find(all, "tensors").types, (Types{"const DLTensor*", "struct DLTensor*"}));
}

Ref<tir::ExternFunction> function_of(const std::string& parameters, const std::string& facts) {
  const IRModule module = script::parse_module(
      "@I.ir_module\nclass Module:\n    @T.extern_func\n"
      "    def f(" +
      parameters +
      "):\n"
      "        T.func_attr({" +
      facts + "})\n");
  return module.find<tir::ExternFunction>("f");
}
std::string differs(const std::string& declaration, const Ref<tir::ExternFunction>& function) {
  const auto all = c_backend::read_prototypes(declaration);
  const auto text = c_backend::difference(find(all, "f"), *function);
  return text ? *text : "not understood";
}

TEST(Prototypes, DifferencesShowBothSides) {
  const auto f =
      function_of("x: T.Buffer((4,), \"float32\"), y: T.Buffer((4,), \"float32\"), n: T.int64",
                  "\"effects\": {\"y\": \"out\"}");
  EXPECT_EQ(differs("void f(const float* x, float* y, int64_t n);", f), "");
  EXPECT_EQ(differs("void f(const void* x, float y[4], size_t n);", f), "");
  EXPECT_EQ(differs("void f(const float* x, const float* y, ptrdiff_t);", f), "");
  EXPECT_EQ(differs("void f(float* x, float* y, int64_t n);", f),
            "parameter 1 is `float*`; calls pass `const float*`");
  EXPECT_EQ(differs("void f(const float* x, double* y, int64_t n);", f),
            "parameter 2 is `double*`; calls pass `float*`");
  EXPECT_EQ(differs("void f(const float* x, float* y, int n);", f),
            "parameter 3 is `int`; calls pass `int64_t`");
  EXPECT_EQ(differs("void f(float* y, int64_t n);", f),
            "it has 2 parameters; calls pass 3 arguments");
  EXPECT_EQ(differs("int f(const float* x, float* y, int64_t n);", f),
            "it returns `int`; calls expect nothing (a code of type int32_t is declared by "
            "`\"returns\": \"int32\"`)");
  EXPECT_EQ(differs("void f(const toy* x, float* y, int64_t n);", f), "not understood");
}

class CTargetTest : public testing::Test {
 protected:
  c_backend::Program generate(const std::string& text, const std::string& header) {
    COptions options;
    if (!header.empty()) {
      write_file(folder_.file("toy.h"), header);
      options.includes = {folder_.file("toy.h")};
    }
    CompileRequest request;
    request.target = resolve("c");
    lowered_ = lower(ModelOptions().prepare(script::parse_module(text)), request);
    return generate_c(lowered_, request, options);
  }
  backend::TemporaryFolder folder_;
  LoweredModule lowered_;
};

constexpr const char* kDense = R"(
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4, 8), "float32"), w: R.Tensor((6, 8), "float32")) -> R.Tensor((4, 6), "float32"):
        with R.dataflow():
            y = R.call_dps_packed("dense", (x, w), out_sinfo=R.Tensor((4, 6), "float32"))
            R.output(y)
        return y
)";

TEST_F(CTargetTest, AHeaderThatDisagreesIsAnError) {
  generate(kDense, "void dense(const float* x, const float* w, float* y);\n");
  EXPECT_TRUE(lowered_.pipeline.remarks.empty() ||
              lowered_.pipeline.remarks.back().pass != "CheckPrototypes");
  try {
    generate(kDense, "\nvoid dense(const float* x, float* y, const float* w);\n");
    ADD_FAILURE() << "no error";
  } catch (const CompileError& error) {
    EXPECT_EQ(error.first().code.id, kPrototypeMismatch.id);
    const std::string text = error.what();
    EXPECT_NE(text.find("toy.h:2 declares `void dense(const float* x, float* y, const float* w)`: "
                        "parameter 2 is `float*`; calls pass `const float*`"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("`void dense(const float* x, const float* w, float* output)`"),
              std::string::npos)
        << text;
  }
}

TEST_F(CTargetTest, WhatIsNotReadIsARemark) {
  generate(kDense,
           "#define DECLARE(name) void name(const float*, const float*, float*)\n"
           "DECLARE(dense);\n");
  ASSERT_FALSE(lowered_.pipeline.remarks.empty());
  const Remark& remark = lowered_.pipeline.remarks.back();
  EXPECT_EQ(remark.pass + " " + remark.subject + " " + remark.reason,
            "CheckPrototypes dense not-found");
}

}  // namespace
}  // namespace tenon
