// SPDX-License-Identifier: Apache-2.0
// Scalar parameters of an extern function that C takes as one array or struct.
#pragma once

#include <string>
#include <vector>

#include "tenon/ir/node.h"

namespace tenon::tir {

/// C is given the address of an array, or of a struct, that its caller fills: `const int64_t*`,
/// `const conv_params*`. In a module each item is a scalar parameter of its own, so that a call
/// gives it a value like any other.
struct ParamGroup {
  struct Member {
    std::string name;   // of a struct's member; empty for an array
    int64_t count = 0;  // items; 0: one number that is no array
    int64_t size() const { return count == 0 ? 1 : count; }
    bool operator==(const Member&) const = default;
  };
  std::string name;              // of C's parameter
  std::string struct_type = {};  // as C writes it: `conv_params`; empty: an array
  std::vector<Member> members;   // in the struct's order; of an array one
  size_t first = 0;              // of the scalar parameters

  bool is_struct() const { return !struct_type.empty(); }
  size_t size() const {
    size_t sum = 0;
    for (const Member& member : members) sum += static_cast<size_t>(member.size());
    return sum;
  }
  /// The name of item `k` as a scalar parameter: `pads_3`, `params_strides_0`, `params_groups`.
  std::string item_name(size_t k) const;
  bool operator==(const ParamGroup&) const = default;
};

}  // namespace tenon::tir

namespace tenon {
template <>
struct FieldTraits<tir::ParamGroup> : PlainTraits<tir::ParamGroup> {
  static uint64_t hash(const tir::ParamGroup& m);
  static std::string text(const tir::ParamGroup& m) { return '"' + m.name + '"'; }
};
}  // namespace tenon
