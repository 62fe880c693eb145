// SPDX-License-Identifier: Apache-2.0
// A function as Python sees it.
#pragma once

#include <memory>
#include <string>

#include "tenon/ir/module.h"

namespace tenon::python {

/// A node, the name that it has in its module, and that module, where its callees are found.
struct Function {
  std::string name;
  BaseFunc node;
  std::shared_ptr<const IRModule> module = {};
};

/// Adds what a function of another module calls and this one lacks.
void add_callees(IRModule& module, const Function& function);

}  // namespace tenon::python
