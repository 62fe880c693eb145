// SPDX-License-Identifier: Apache-2.0
// Kernels whose statements are not scheduled all together: stretches of them are.
#pragma once

#include "tenon/support/target.h"
#include "tenon/tir/stmt.h"

namespace tenon::tir {

/// Whether statements of a function stay where they are (calls, pipelines), or are too many for one
/// schedule: every primitive looks for its block among them all. \pre it has a root block
bool has_stretches(const PrimFunc& function);

/// The function with each stretch of statements between such scheduled as if it were a function by
/// itself, long ones in parts. As it was where its root block has an init or views.
Ref<PrimFunc> schedule_in_stretches(const Ref<PrimFunc>& function, const Target& target);

}  // namespace tenon::tir
