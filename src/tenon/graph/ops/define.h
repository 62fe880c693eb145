// SPDX-License-Identifier: Apache-2.0
// Helpers for definitions of operators: they read arguments and attributes in type rules, and build
// the kernel of a lowering.
#pragma once

#include <string>
#include <vector>

#include "tenon/graph/builder.h"
#include "tenon/graph/op.h"
#include "tenon/graph/ops/attributes.h"
#include "tenon/graph/shape.h"
#include "tenon/tir/compute.h"

namespace tenon::graph {

using tir::Indices;
using tir::Operand;

// ---- arguments ----------------------------------------------------------------------------------

/// Argument i, or null where it was left out.
Value arg_or_null(const Call& call, size_t i);
/// Its type as a tensor. \throws CompileError (kTypeMismatch) with the operator's and the input's
/// name.
Ref<TensorType> tensor_arg(const Call& call, size_t i);
/// The same, with shape and dtype known. \throws CompileError (kUnsupported) where they are not:
/// for lowerings.
Ref<TensorType> shaped_arg(const Call& call, size_t i);
/// The integers of a shape, or of a tuple of scalars, or one scalar: `R.shape([2, n])`. Nothing
/// where their values are not known. \throws CompileError (kBadArgument) where it is something
/// else.
std::optional<std::vector<Expr>> dims_arg(const Call& call, size_t i);
/// The value of a scalar argument. \throws CompileError (kBadArgument).
Expr scalar_arg(const Call& call, size_t i);
/// The types of a tuple of tensors. \throws CompileError (kBadArgument).
std::vector<Ref<TensorType>> tensors_arg(const Call& call, size_t i);
/// The values of a tuple argument, as leaves.
std::vector<Value> tuple_values(const Value& tuple);
/// The elements of an integer constant; nothing where the argument is no constant.
std::optional<std::vector<int64_t>> constant_ints(const Value& value);

// ---- checks -------------------------------------------------------------------------------------

/// `axis` counted from the front. \throws CompileError (kBadAttribute) outside [-ndim, ndim).
size_t axis_of(const Call& call, int64_t axis, int64_t ndim);
/// Distinct axes, each counted from the front, in the order given.
std::vector<size_t> axes_of(const Call& call, const std::vector<int64_t>& axes, int64_t ndim);
/// \throws CompileError (kRankMismatch) where argument i has another known rank.
void check_rank(const Call& call, size_t i, int64_t ndim);
/// \throws CompileError (kDTypeMismatch) where argument i has another known dtype than `dtype`.
void check_dtype(const Call& call, size_t i, DType dtype);
/// \throws CompileError (kDTypeMismatch) where the dtype is known and is no float.
void check_float(const Call& call, size_t i);
/// The element types that an element-wise operator takes.
enum class Takes : uint8_t { kNumber, kFloat, kInteger, kBits, kBool, kAny };
/// Whether `dtype` is one of them; one that is not known (void) is.
bool accepts(Takes takes, DType dtype);
/// "a floating-point dtype", "an integer dtype", ..., for messages.
std::string_view name_of(Takes takes);
/// \throws CompileError (kShapeMismatch) where both are known to differ.
void check_dim(const Call& call, size_t i, const Expr& dim, const Expr& expected,
               std::string_view what);
/// \throws CompileError (kBadAttribute) where `value` of attribute `attr` is none of `choices`.
void check_choice(const Call& call, std::string_view attr, std::string_view value,
                  std::initializer_list<std::string_view> choices);
/// Whether optional argument i is there: not left out, `R.null_value()` or the empty tuple.
bool present(const Call& call, size_t i);
/// The operator, and the model's node where there is one: for messages of checks at run time.
std::string name_for_messages(const Call& call);
/// The name of input i, for messages.
std::string input_name(const Call& call, size_t i);

/// A tensor type with the shape where it is known, otherwise with the rank alone.
Type tensor_of(const std::optional<std::vector<Expr>>& shape, DType dtype, int64_t ndim);
/// The type of argument i with another dtype.
Type same_shape(const Call& call, size_t i, DType dtype);
/// Dimensions without / with those at `axes` (removed, or kept as 1).
std::vector<Expr> reduced_shape(const std::vector<Expr>& shape, const std::vector<size_t>& axes,
                                bool keepdims);
bool contains(const std::vector<size_t>& axes, size_t axis);

// ---- lowering -----------------------------------------------------------------------------------

/// Whether a contraction is one of words (R.words), by its name.
bool is_of_words(const Call& call);
/// \throws CompileError (kDTypeMismatch) where the first two arguments have no 32 bits, or the result
/// is no int32.
void check_words(const Call& call, DType out_dtype);
/// \throws CompileError (kBadAttribute) where `b`, whose panels are its first axis and whose last are the
/// columns of a panel, has no such number of columns.
void check_units(const Call& call, int64_t units, const TensorType& b);
/// Of elements, which may be words, in `dtype`.
Expr product_of(bool words, const Expr& a, const Expr& b, DType dtype);

/// The number of elements of a known shape.
double product_of(const std::vector<double>& shape);

/// What sums and statistics of a dtype are computed in: float32 for narrower floats, whose sums
/// would overflow or lose most of their digits.
DType wide_dtype(DType dtype);

/// The kernel of a call under construction.
class KernelOf : public tir::KernelBuilder {
 public:
  /// Named after the operator: `nn.conv2d` gives `conv2d`.
  KernelOf(BlockBuilder& builder, const Call& call);
  /// Argument i as a parameter of the kernel; a constant of one element becomes its value.
  Operand arg(size_t i);
  /// The same for any value of tensor type.
  Operand value(const Value& value, const std::string& name);
  /// Argument i, read in its wide dtype.
  Operand wide_arg(size_t i) { return wide(arg(i)); }
  static Operand wide(Operand operand);
  /// A buffer for each tensor, also of one element: for what needs an address.
  Operand buffer_arg(size_t i);
  /// The shape of the call's (first) result, and its dtype.
  const std::vector<Expr>& shape() const { return *out_types_.at(0)->shape; }
  const std::vector<Expr>& shape(size_t i) const { return *out_types_.at(i)->shape; }
  DType dtype(size_t i = 0) const { return out_types_.at(i)->dtype; }
  const std::string& name() const { return name_; }
  const Call& call() const { return call_; }
  /// `T_name`, for the buffer of the result.
  std::string out_name() const { return "T_" + name_; }
  /// An attribute of the kernel.
  void set_attr(const std::string& name, AttrValue value) { attrs_.set(name, std::move(value)); }
  /// Emits `R.call_tir` of the kernel with these results; what was computed wide is rounded.
  Value emit(const std::vector<Operand>& outputs);
  /// One result, defined as a sum of products over `extents`. `element` gives them in the dtype
  /// that it is told: that of the result, or float32 where that is a narrower float, whose sums
  /// would lose most of their digits.
  Value emit_contraction(const std::vector<Expr>& extents,
                         const std::function<Expr(const Indices&, const Indices&, DType)>& element);
  /// One result, defined by its elements, which are rounded to its dtype where they are wider.
  Value emit_compute(const std::function<Expr(const Indices&)>& element);

 private:
  Operand parameter(const Value& value, const std::string& name, const Ref<TensorType>& type);
  BlockBuilder& builder_;
  const Call& call_;
  std::string name_;
  std::vector<Ref<TensorType>> out_types_;
  std::vector<Value> args_;
  std::map<const Node*, Operand> known_;
  Attrs attrs_;
};

/// The scalar constant `value` as an expression, where it is a constant of one element.
Expr scalar_constant(const Value& value);

/// A call of an intrinsic on floats of any width, computed in float32 where the dtype is narrower.
Expr float_call(IntrinsicId id, std::vector<Expr> args);

}  // namespace tenon::graph
