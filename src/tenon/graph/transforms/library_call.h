// Which library function a part of a graph becomes a call of.
#pragma once

#include <string>
#include <vector>

#include "tenon/graph/expr.h"

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

  /// The values to call it with where the composite's are `inputs`.
  std::vector<Value> arguments_of(const std::vector<Value>& inputs) const;
};
/// The declared function with this symbol, or one that follows from the composite's type, which is
/// added to the module with the composite as its reference body. Captured constants go to the
/// scalar parameters of their names; a derived function takes them after the inputs, by name, as
/// int64_t or double.
/// \throws CompileError (kSignatureMismatch) where the declared one does not fit.
LibraryCall library_call_of(IRModule& module, const Function& composite, const std::string& backend,
                            const std::string& symbol);

}  // namespace tenon::graph
