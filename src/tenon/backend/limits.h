// SPDX-License-Identifier: Apache-2.0
// The least and greatest value of a dtype, for T.min_value, T.max_value and T.infinity.
#pragma once

#include <cstdint>

#include "tenon/ir/expr.h"

namespace tenon::backend {

/// Of a call of one of these whose dtype is a float.
double float_limit(const Call& call);
/// Of the others; the greatest uint64 as -1, whose bits it has.
int64_t integer_limit(const Call& call);

}  // namespace tenon::backend
