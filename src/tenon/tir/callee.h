// SPDX-License-Identifier: Apache-2.0
// The one description of a callee, whether it is a PrimFunc or an extern
// function.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tenon/tir/extern_function.h"

namespace tenon::tir {

/// A PrimFunc or an extern function, seen from a call of it (CallTir).
struct Callee {
  std::string name;                  // in the module
  std::vector<Ref<Var>> params;      // a scalar, or the handle of the buffer beside it
  std::vector<Ref<Buffer>> buffers;  // as many; null for a scalar
  DType result = kVoid;
  BaseFunc function;

  /// Null where it is the other kind.
  const PrimFunc* prim() const { return function.as<PrimFunc>(); }
  const ExternFunction* external() const { return function.as<ExternFunction>(); }
  bool is_extern() const { return external() != nullptr; }
  /// Its symbolic Vars that no scalar parameter is, in order of first appearance.
  std::vector<Ref<Var>> symbols() const;
  /// For messages: `w: Buffer((n, k), "float32")`, or `m: int64` for a scalar.
  std::string declaration(size_t i) const;
};

/// Nothing where the module has no PrimFunc or declared extern function of this name.
std::optional<Callee> callee_of(const IRModule& module, const std::string& name);
Callee callee_of(const std::string& name, const Ref<PrimFunc>& function);
Callee callee_of(const std::string& name, const Ref<ExternFunction>& function);

/// The values that a call gives the callee's scalar parameters and symbolic Vars, each cast to the
/// Var's dtype: from scalar arguments, and from the extents and strides of regions, first sight
/// first. `args` as those of CallTir.
Substitution bind_symbols(const Callee& callee, const std::vector<NodePtr>& args);

/// The extents of a region without the dimensions that it drops.
std::vector<Expr> kept_extents(const BufferRegion& region);
/// The strides of a region's buffer in those dimensions, in elements.
std::vector<Expr> kept_strides(const BufferRegion& region);

}  // namespace tenon::tir
