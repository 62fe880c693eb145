// SPDX-License-Identifier: Apache-2.0
// Facts that code generation may assume about expressions, found conservatively in one look,
// without the analyzer.
#pragma once

#include <unordered_set>

#include "tenon/ir/visit.h"
#include "tenon/tir/stmt.h"

namespace tenon::backend {

/// Signs of integers, given which variables are known to be >= 0.
class SignFacts {
 public:
  void add_nonnegative(const Node* var) { vars_.insert(var); }
  bool has(const Node* var) const { return vars_.count(var) != 0; }
  /// Known to be >= 0, so that floor division is plain division.
  bool is_nonnegative(const Expr& expr) const;
  bool is_positive(const Expr& expr) const;

 private:
  std::unordered_set<const Node*> vars_;
};

/// A float that is known not to be NaN.
bool never_nan(const Expr& expr);

/// Arithmetic over variables and constants alone. As an index it stays inside an object and does
/// not wrap; a value that was read from memory may be anything.
bool is_plain_index(const Expr& expr);

/// Whether the expression reads memory or may stop the program: then it must not run where its
/// guard does not hold.
bool needs_guard(const Expr& expr);

/// The elements that the buffer of `alloc` spans by its shape and strides, elem_offset not counted;
/// 0 where it has none, more than 2^40 where they are too many. `function` is for the diagnostic.
/// \throws CompileError (kUnsupported) where the shape is not constant.
int64_t allocated_elements(const tir::AllocBuffer& alloc, const std::string& function);

}  // namespace tenon::backend
