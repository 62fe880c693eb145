// SPDX-License-Identifier: Apache-2.0
// Every intrinsic of scalars has a meaning in the interpreter.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tenon/interp/scalar.h"

namespace tenon::interp {
namespace {

bool is_computed(IntrinsicId id, DType dtype) {
  const Slot one = dtype.is_float() ? Slot{.f = 1} : Slot{.i = 1};
  const Slot two = dtype.is_float() ? Slot{.f = 2} : Slot{.i = 2};
  try {
    (void)apply_intrinsic(id, dtype, dtype, one, two, one, {});
    return true;
  } catch (const CompileError& error) {
    EXPECT_NE(std::string(error.what()).find("cannot be interpreted"), std::string::npos);
    return false;
  }
}

TEST(Intrinsics, OfScalarsAreComputed) {
  std::set<std::string> others;
  for (size_t i = 0; i < kIntrinsicCount; ++i) {
    const auto id = static_cast<IntrinsicId>(i);
    if (!is_computed(id, kFloat32) && !is_computed(id, kInt32)) others.emplace(intrinsic(id).name);
  }
  // Resolved to other instructions, and what nothing gives a meaning.
  const std::set<std::string> resolved = {
      "if_then_else",     "likely",      "assume",      "ret",          "address_of",
      "tvm_access_ptr",   "prefetch",    "masked_load", "masked_store", "call_extern",
      "call_pure_extern", "call_packed", "call_cpacked"};
  const std::set<std::string> unknown = {"q_multiply_shift",
                                         "isnullptr",
                                         "vectorlow",
                                         "vectorhigh",
                                         "vectorcombine",
                                         "call_llvm_intrin",
                                         "call_llvm_pure_intrin",
                                         "call_intrin",
                                         "tvm_tuple"};
  std::set<std::string> expected = resolved;
  expected.insert(unknown.begin(), unknown.end());
  EXPECT_EQ(others, expected);
}

}  // namespace
}  // namespace tenon::interp
