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
  std::vector<size_t>
      inputs;  // for each argument that it takes, which input of the composite it is
};
/// The declared function with this symbol, or one that follows from the composite's type, which is
/// added to the module with the composite as its reference body.
/// \throws CompileError (kSignatureMismatch) where the declared one does not fit.
LibraryCall library_call_of(IRModule& module, const Function& composite, const std::string& backend,
                            const std::string& symbol);

}  // namespace tenon::graph
