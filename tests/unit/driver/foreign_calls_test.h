// SPDX-License-Identifier: Apache-2.0
// What tests of calls into libraries have in common: a library of C functions and scripts that
// call them.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tenon/driver/compiler.h"
#include "tenon/driver/console.h"
#include "tenon/driver/executable.h"
#include "tenon/driver/model_options.h"
#include "tenon/driver/verify.h"
#include "tenon/script/parser.h"
#include "tenon/script/printer.h"

namespace tenon {

class ForeignCallsTest : public testing::Test {
 protected:
  /// `source`, in C, is the library; the system's compiler makes it one.
  explicit ForeignCallsTest(const std::string& source) {
    write_file(folder_.file("library.c"), source);
    libraries_ = std::make_shared<const backend::Libraries>(
        std::vector<std::string>{folder_.file("library.c")}, nullptr, backend::Trust::kAnything);
  }

  /// As the command line takes a script; what is printed of it reads as the same.
  static IRModule parse(const std::string& text) {
    IRModule module = ModelOptions().prepare(script::parse_module(text));
    verify_module(module);
    EXPECT_TRUE(structural_equal(module, script::parse_module(script::print(module))));
    return module;
  }
  static CompileRequest request(const std::string& target = "native") {
    CompileRequest request;
    request.target = resolve(target);
    return request;
  }
  static Ref<TensorData> tensor(const std::vector<float>& values, std::vector<int64_t> shape) {
    std::vector<std::byte> bytes(values.size() * sizeof(float));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return TensorData::owned(kFloat32, std::move(shape), std::move(bytes));
  }
  static std::vector<float> floats(const TensorData& tensor) {
    std::vector<float> out;
    for (int64_t i = 0; i < tensor.elements(); ++i)
      out.push_back(static_cast<float>(tensor.at_float(i)));
    return out;
  }
  template <typename F>
  static std::string error_of(const F& f) {
    try {
      f();
    } catch (const CompileError& error) {
      return error.what();
    }
    return "no error";
  }

  backend::TemporaryFolder folder_;
  std::shared_ptr<const backend::Libraries> libraries_;
};

}  // namespace tenon
