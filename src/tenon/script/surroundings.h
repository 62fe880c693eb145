// SPDX-License-Identifier: Apache-2.0
// Evaluates the Python around a module or kernel: imports, constants and helper functions, as far
// as their values can be told by reading.
#pragma once

#include <functional>
#include <set>

#include "tenon/script/evaluator.h"

namespace tenon::script {

/// The kind of what a definition's decorators make of it: `prim_func`, `function`, `extern_func`,
/// `ir_module`, `rewriter`, `macro`; empty where they are another's.
std::string decorator_name(const ast::Stmt& definition);

/// The decorated functions and modules of a file, outermost first in order of the text: those
/// inside of Python functions or other classes only where there are none outside.
std::vector<const ast::Stmt*> definitions(const ast::Body& file);

class Surroundings final : public Evaluator {
 public:
  explicit Surroundings(ModuleContext& module) : Evaluator(module, kInt32) {}

  /// Goes through a file as Python does and calls `visit` at each of its definitions, when lookup()
  /// finds the names that are defined there.
  void walk(const ast::Body& file, const std::function<void(const ast::Stmt&)>& visit);

 protected:
  Object call_other(const ast::Expr& call, const Object& callee) override;

 private:
  void statements(const ast::Body& body, const std::function<void(const ast::Stmt&)>& visit);
  void statement(const ast::Stmt& stmt, const std::function<void(const ast::Stmt&)>& visit);
  void import(const ast::Stmt& stmt);
  void assign(const ast::Stmt& stmt);
  /// What `body` assigns has no known value from here on.
  void forget(const ast::Body& body);
  void forget(const ast::Expr& target, const std::string& reason);
};

}  // namespace tenon::script
