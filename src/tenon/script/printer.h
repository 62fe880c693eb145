// SPDX-License-Identifier: Apache-2.0
// Prints modules, functions, statements, expressions and types as TVMScript. What it prints of a
// module, parse_module() reads back structurally equal; docs/tvmscript.md tells the rules.
#pragma once

#include <string>
#include <vector>

#include "tenon/graph/expr.h"
#include "tenon/ir/module.h"
#include "tenon/script/constants.h"
#include "tenon/tir/stmt.h"

namespace tenon::script {

struct PrintOptions {
  /// Gets the constants that are printed as a reference; without one they are still referred to.
  ConstantStore* constants = nullptr;
  /// Constants of at most so many elements are written in place.
  int64_t inline_elements = 16;
  /// The line of imports before the module.
  bool header = true;
  std::string module_name = "Module";
  /// Variables of loops, and blocks: a line of comment below theirs points at them.
  std::vector<NodePtr> marked = {};
};

std::string print(const IRModule& module, const PrintOptions& options = {});

/// One function, under `name`, as it stands in a module.
std::string print(const BaseFunc& function, const std::string& name,
                  const PrintOptions& options = {});

/// The loops and blocks of a kernel as they print, without the lines of anything else. Those of
/// `marked` are pointed at.
std::string print_nests(const Ref<tir::PrimFunc>& function, const std::string& name,
                        const std::vector<NodePtr>& marked);

/// Any other node (a statement, an expression, a type, a buffer, a region, a value), for messages
/// and debugging. What it uses but does not define is printed by name only.
std::string print(const NodePtr& node, const PrintOptions& options = {});

}  // namespace tenon::script
