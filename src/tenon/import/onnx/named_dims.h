// SPDX-License-Identifier: Apache-2.0
// Dimensions by the names that a file gives them, sums that exporters write as names included:
// "past_length + length".
#pragma once

#include <map>
#include <string>

#include "tenon/import/onnx/import.h"
#include "tenon/import/onnx/model.h"
#include "tenon/support/names.h"

namespace tenon::onnx {

class NamedDims {
 public:
  /// \param names  of what is made; both must outlive this object.
  NamedDims(const Model& model, const ImportOptions& options, NameSupply& names)
      : model_(model), options_(options), names_(names) {}

  /// From now on dimension `name` is `value`, unless it is known.
  void fix(const std::string& name, int64_t value) { known_.emplace(name, int64(value)); }

  /// A number that the options give, a sum of dimensions that inputs have by themselves, or a
  /// variable, the same each time. \throws CompileError (kBadOption) at a negative number
  Expr of(const std::string& name);

 private:
  Expr sum_of(const std::string& text);
  bool is_dim(const std::string& name) const;

  const Model& model_;
  const ImportOptions& options_;
  NameSupply& names_;
  std::map<std::string, Expr> known_;
};

}  // namespace tenon::onnx
