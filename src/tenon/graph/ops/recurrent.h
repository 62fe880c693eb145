// SPDX-License-Identifier: Apache-2.0
// Operators of the family of recurrences that stand in files of their own.
#pragma once

#include "tenon/graph/op.h"

namespace tenon::graph {

OpDef linear_attention();

}  // namespace tenon::graph
