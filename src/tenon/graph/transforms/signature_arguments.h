// SPDX-License-Identifier: Apache-2.0
// Computes the scalar arguments of a library call from attributes of the matched operators,
// captured constants, dimensions, and expressions of these. The guide is docs/library-calls.md.
#pragma once

#include <string>

#include "tenon/graph/kernels.h"
#include "tenon/graph/operator_attributes.h"
#include "tenon/tir/extern_function.h"

namespace tenon::graph {

/// Checks the attributes of a declared function that speak of composites: `args`, `tables`,
/// `enums`, `priority`, `cost`, `composite`. \throws CompileError (kBadAttribute)
void check_signature(const tir::ExternFunction& declared);

/// The values for one composite.
class SignatureArguments {
 public:
  /// \param dims  what the signature's dimensions are, in terms of the composite's
  SignatureArguments(const IRModule& module, const Function& composite,
                     const tir::ExternFunction& declared, const Substitution& dims);

  /// Of scalar parameter `i`: a PrimValue or a StringValue.
  /// \throws CompileError kBadAttribute where the declaration is wrong for every match of this
  /// kind; kSignatureMismatch where it does not cover this one's value.
  Value of(size_t i) const;
  /// Of an expression over what parameters may name, and of `more`.
  Expr evaluate(const std::string& text, const std::string& what,
                const std::map<std::string, Expr>& more = {}) const;

 private:
  struct Slot;
  Slot slot_of(size_t i) const;
  AttrValue value_of(const Slot& slot) const;
  AttrValue named(const Slot& slot, const std::string& text) const;
  AttrValue item_of(const Slot& slot, const std::string& source, const AttrValue& value) const;
  AttrValue looked_up(const Slot& slot, const std::string& source, const std::string& text) const;
  std::string place_of(const Slot& slot) const;
  CompileError wrong(const Slot& slot, const std::string& why) const;

  const Function& composite_;
  const tir::ExternFunction& declared_;
  OperatorAttributes attributes_;
  std::map<std::string, Expr> dims_;  // dimensions and enumerators, by name
};

}  // namespace tenon::graph
