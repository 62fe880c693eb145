// SPDX-License-Identifier: Apache-2.0
// Counts how many terms an element of a result is summed from.
#pragma once

#include "tenon/tir/stmt.h"

namespace tenon::tir {

/// The most steps in which a function adds to one element: the product of the extents of the loops
/// around a store that reads its own buffer, as far as the store's indices do not vary with them. A
/// loop whose extent is not known counts `unknown` times. 1 where nothing is summed. Calls are not
/// followed.
int64_t longest_sum(const PrimFunc& function, int64_t unknown);

}  // namespace tenon::tir
