// SPDX-License-Identifier: Apache-2.0
// Resolves the library function that a part of a graph becomes a call of.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tenon/graph/expr.h"
#include "tenon/tir/extern_function.h"

namespace tenon::graph {

/// The C function of a composite's name: what is no letter or digit becomes `_`.
std::string c_symbol(const std::string& composite);

struct LibraryCall {
  std::string callee;  // an extern function of the module
  /// For each argument that it takes: which input of the composite it is, or a constant that the
  /// composite's pattern captured (attr `constants`).
  struct Argument {
    size_t input = 0;
    Value constant = {};
  };
  std::vector<Argument> arguments;
  std::vector<Ref<Var>> params = {};  // of the composite: constants may name their dimensions

  /// The values to call it with where the composite's are `inputs`.
  std::vector<Value> arguments_of(const std::vector<Value>& inputs) const;
};
/// A declared function and its name in the module.
struct Signature {
  std::string name;
  Ref<tir::ExternFunction> function;
};
/// The signature for composite `toy.conv2d`: the function with attribute `composite` = that name,
/// else the one that is called `conv2d` in the module, else one whose C symbol is that.
std::optional<Signature> signature_for(const IRModule& module, const std::string& composite);
/// Seconds that attribute `cost` declares for this composite; nothing where it declares none, or
/// where they depend on a dimension that is not known. \throws as library_call_of.
std::optional<double> signature_cost(const IRModule& module, const Function& composite,
                                     const tir::ExternFunction& declared);

/// The signature for `name` (signature_for), or one that follows from the composite's type, which
/// is added to the module with the composite as its reference body. Scalar parameters get what
/// SignatureArguments finds; a derived function takes captured constants after the inputs, by
/// name, as int64_t or double.
/// \throws CompileError kSignatureMismatch where the declared one does not fit this composite;
/// kBadAttribute where what it declares is wrong.
LibraryCall library_call_of(IRModule& module, const Function& composite, const std::string& backend,
                            const std::string& name);

}  // namespace tenon::graph
