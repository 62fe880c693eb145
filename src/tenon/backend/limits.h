// SPDX-License-Identifier: Apache-2.0
// What code generators ask of dtypes: the least and greatest value, for T.min_value, T.max_value and
// T.infinity, and whether there is arithmetic.
#pragma once

#include <cstdint>

#include "tenon/ir/expr.h"

namespace tenon::backend {

/// Of a call of one of these whose dtype is a float.
double float_limit(const Call& call);
/// Of the others; the greatest uint64 as -1, whose bits it has.
int64_t integer_limit(const Call& call);

/// \throws CompileError (kUnsupported) at arithmetic of a narrow type, which LowerIntrinsics replaces.
void check_wide(DType dtype, const Origin& origin);

}  // namespace tenon::backend
