// SPDX-License-Identifier: Apache-2.0
// What statements with calls read and write, where the callees are known.
#pragma once

#include "tenon/tir/analysis/region.h"
#include "tenon/tir/call_effects.h"

namespace tenon::tir {

/// As find_accesses and with_accesses of region.h, with calls that read and write the regions that
/// they are given as `effects` tells.
Accesses find_accesses(const Stmt& stmt, CallEffects& effects);
Ref<Block> with_accesses(const Ref<Block>& block, CallEffects& effects);

}  // namespace tenon::tir
