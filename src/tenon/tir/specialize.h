// SPDX-License-Identifier: Apache-2.0
// Specialises PrimFuncs for given values of their scalar parameters and symbolic dimensions.
#pragma once

#include "tenon/ir/visit.h"
#include "tenon/tir/stmt.h"

namespace tenon::tir {

/// A copy of `function` in which symbolic Vars of its buffers, and scalar parameters, are the
/// constants of `values`; parameters that are given are none of the copy. Strides that turn out
/// row-major are not stated any more. Private.
Ref<PrimFunc> specialize(const PrimFunc& function, const Substitution& values);

}  // namespace tenon::tir
