// SPDX-License-Identifier: Apache-2.0
// Values of Python as those of scripts, and back; expressions of graphs as Python sees them.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "common.h"
#include "tenon/script/host.h"

namespace tenon::python {

/// A value of a graph, and functions that it calls and that no module has yet.
struct Value {
  graph::Value node;
  std::shared_ptr<const IRModule> functions = {};
  graph::Type known = {};  // of the variable that it is bound to; null: what its parts say

  graph::Type type() const { return known ? known : graph::type_of(node); }
};

/// A scalar expression and a buffer of TensorIR.
struct PrimExpr {
  Expr node;
};
struct Buffer {
  Ref<tir::Buffer> node;
};
/// A statement of TensorIR.
struct Stmt {
  tir::Stmt node;
};

/// The text of a file, which every place in it refers to.
struct Source {
  std::shared_ptr<const SourceFile> file;
};

/// What Python's objects are in scripts. Modules keep their identity while it lives, so that their
/// functions are captured once.
class Capture {
 public:
  script::Object object_of(nb::handle value);

 private:
  std::optional<script::Object> function_or_module(nb::handle value);
  std::optional<script::Object> of_script(nb::handle value);
  std::optional<script::Object> dtype(nb::handle value);

  std::map<const PyObject*, std::shared_ptr<const IRModule>> modules_;
};

/// Nothing for what is known only when a program runs: expressions of kernels and graphs.
std::optional<nb::object> to_python(const script::Object& object);

/// The names that `lookup(name)` gives: a tuple of one value, or None.
std::shared_ptr<const script::HostNames> names_of(nb::object lookup);

/// A value of a graph, from one or from what becomes a constant, shape or tuple.
Value value_of(nb::handle value);
/// Adds the functions that come with a value. \throws nb::value_error where the module has others
/// under their names.
void add_functions(IRModule& module, const Value& value);

}  // namespace tenon::python
