// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/graph/op.h"

namespace tenon::graph {

OpDef all_class_non_max_suppression();

}  // namespace tenon::graph
