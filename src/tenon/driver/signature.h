// SPDX-License-Identifier: Apache-2.0
// The interface of a program: names, element types and shapes, of a module's `main` and of a
// compiled program alike.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tenon/ir/module.h"
#include "tenon/runtime/abi.h"

namespace tenon {

/// A dimension: a number, a symbol, or an expression known only when the program runs.
struct PortDim {
  int64_t value = -1;  // at least 0 where it is a number
  std::string symbol;  // empty for a number and for an expression
  bool operator==(const PortDim&) const = default;
};

struct Port {
  std::string name;
  DType dtype;
  std::vector<PortDim> dims;

  /// `float32 (batch, 3, 32, 32)`; `?` for an expression.
  std::string str() const;
};

struct Signature {
  std::vector<Port> inputs, outputs;
};

/// Of a graph function `main`, or of the PrimFunc that it was lowered to.
/// \throws CompileError kUndefined where there is no `main`, kUnsupported where it takes or gives
/// what is no tensor.
Signature signature_of(const IRModule& module);
Signature signature_of(const TenonProgram& program);

/// The shape of a port for values of its symbols; a symbol without a value, and an expression, has
/// `otherwise`.
std::vector<int64_t> shape_of(const Port& port, const std::map<std::string, int64_t>& symbols,
                              int64_t otherwise);

}  // namespace tenon
