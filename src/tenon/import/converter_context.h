// SPDX-License-Identifier: Apache-2.0
// What converters of every format share: the operands of one operator, and the builder of the graph
// function. Formats derive theirs from it (onnx/context.h, relay/op_call.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tenon/graph/builder.h"
#include "tenon/graph/shape.h"
#include "tenon/import/elements.h"
#include "tenon/import/refusals.h"

namespace tenon::importers {

using graph::Value;
using Dims = std::vector<Expr>;
using Ints = std::vector<int64_t>;

/// The type of a value with a known shape. \throws Unsupported
Ref<graph::TensorType> shaped(const Value& value);

class ConverterContext {
 public:
  /// \param name  of the operator in its format
  /// \param hint  for the names of values
  ConverterContext(graph::BlockBuilder& builder, std::string name, std::string hint)
      : builder_(builder), name_(std::move(name)), hint_(std::move(hint)) {}
  virtual ~ConverterContext() = default;

  const std::string& name() const { return name_; }
  const Origin& origin() const { return builder_.origin(); }
  graph::BlockBuilder& builder() { return builder_; }

  // ---- operands

  /// \throws Unsupported where the shape is known only at run time.
  virtual Ref<graph::TensorType> type(size_t i) const = 0;
  Dims shape(size_t i) const { return *type(i)->shape; }
  DType dtype(size_t i) const { return type(i)->dtype; }
  int64_t ndim(size_t i) const { return type(i)->ndim; }
  /// Null where they are not known.
  virtual const Elements* elements(size_t i) = 0;
  /// Null where the operand is no constant.
  virtual Ref<TensorData> constant(size_t i) const = 0;

  /// Known elements of an integer operand, of any rank. \throws Unsupported where they are known
  /// only at run time; `what` names the operand.
  Dims dims(size_t i, std::string_view what);
  /// The same, as numbers.
  Ints ints(size_t i, std::string_view what);
  int64_t int_scalar(size_t i, std::string_view what);
  std::vector<double> floats(size_t i, std::string_view what);
  double float_scalar(size_t i, std::string_view what);

  // ---- building

  /// The value of a graph operator.
  virtual Value op(std::string_view op, std::vector<Value> args, Attrs attrs = {}) {
    return builder_.op(op, std::move(args), std::move(attrs), hint_);
  }
  /// A constant of `value` everywhere.
  Value filled(DType dtype, const Ints& shape, double value) const;
  /// One of rank 0.
  Value scalar(DType dtype, double value) const { return filled(dtype, {}, value); }
  static Value ints_constant(const Ints& values);
  static Value shape_value(const Dims& dims) { return make<graph::ShapeExpr>(dims); }
  static Value prim(const Expr& value) { return make<graph::PrimValue>(value); }
  Value cast(const Value& value, DType dtype);
  Value reshape(const Value& value, const Dims& dims);
  Value transpose(const Value& value, const Ints& axes);

  // ---- arithmetic

  /// `axis` counted from the front. \throws CompileError (kBadAttribute) out of [-ndim, ndim).
  int64_t axis(int64_t axis, int64_t ndim) const;
  Ints axes(Ints axes, int64_t ndim) const;
  template <typename... Args>
  [[noreturn]] void bad(const Code& code, fmt::format_string<Args...> format,
                        Args&&... args) const {
    throw CompileError(code, origin(), format, std::forward<Args>(args)...);
  }

 protected:
  /// The elements of an operand that only the run knows, over symbolic variables; null where it
  /// cannot be asked for as numbers.
  virtual const Elements* run_time_elements(size_t) { return nullptr; }
  /// Operand `i` was asked for as these numbers, which may be symbolic, under the name `what`.
  virtual void used_as_number(size_t i, std::string_view what, const Dims& values);

 private:
  graph::BlockBuilder& builder_;
  std::string name_, hint_;
};

}  // namespace tenon::importers
