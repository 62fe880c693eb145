// SPDX-License-Identifier: Apache-2.0
// Scratch sizes that a library computes at run time: by a function `size_t f(int64_t, ...)`, which
// an extern function names in its attribute `scratch_query`.
#pragma once

#include <string>
#include <vector>

#include "tenon/ir/visit.h"
#include "tenon/tir/extern_function.h"

namespace tenon::tir {

/// ``"scratch_query": {"scratch": "conv_scratch_bytes(n, c, stride)"}``: how many bytes of scratch
/// a call needs. The arguments are dimensions and scalar parameters of the declaration, and
/// integers. The same arguments give the same number, in every run.
struct ScratchQuery {
  size_t parameter = 0;    // the scratch
  std::string symbol;      // of the function in C
  std::vector<Expr> args;  // int64, over the Vars of the declaration

  /// Where the buffer's extent is a name that follows from nothing else, the query gives it. Null
  /// where the declaration has a bound of its own, which the query is compared with at run time.
  const Var* extent(const ExternFunction& function) const;
  /// The bytes, int64, where `values` binds the Vars.
  Expr bytes(const Substitution& values) const;
};

/// \throws CompileError (kBadAttribute) where the attribute is malformed, or names what the
/// function does not have.
std::vector<ScratchQuery> scratch_queries(const ExternFunction& function);

/// The functions that the extern functions of a module name so, each once.
std::vector<std::string> scratch_query_symbols(const IRModule& module);

/// Binds, in a call with these arguments, what only queries give; the scalar parameters too.
void bind_scratch(const ExternFunction& function, const std::vector<NodePtr>& args,
                  Substitution& values);

}  // namespace tenon::tir
