// SPDX-License-Identifier: Apache-2.0
// ConvertLayout with a list of calls that it leaves as they are.
#pragma once

#include <functional>

#include "tenon/graph/expr.h"
#include "tenon/ir/module.h"

namespace tenon::graph {

struct LayoutOptions {
  /// Convolutions and products with constant weights that stay plain, as others look for them in
  /// the kernels that operators become. Empty: none.
  std::function<bool(const Call& call)> stays_plain = {};
};

/// See convert_layout in transforms.h.
IRModule convert_layout(IRModule module, const LayoutOptions& options);

}  // namespace tenon::graph
