// SPDX-License-Identifier: Apache-2.0
// Types of graph values: what Relax's older scripts call struct info. Dimensions are integer
// expressions over symbolic variables.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tenon/ir/expr.h"

namespace tenon::graph {

/// Kinds of types.
enum class TypeKind : uint8_t {
  kObject,
  kTensor,
  kShape,
  kPrim,
  kTuple,
  kFunc,
};

struct TypeNode : Node {
  using Kind = TypeKind;
  static constexpr NodeFamily kFamily = NodeFamily::kType;

 protected:
  explicit TypeNode(Origin origin) : Node(std::move(origin)) {}
};
using Type = Ref<TypeNode>;

/// Anything: the top of the lattice.
struct ObjectType final : NodeOf<ObjectType, TypeNode> {
  explicit ObjectType(Origin origin = {});
  void finish() {}
  static constexpr TypeKind kKind = TypeKind::kObject;
  static constexpr std::string_view kName = "Object";
  static std::vector<FieldInfo> fields();
};

/// A tensor: element type and shape. With shape unknown only the rank may be known; rank -1:
/// unknown too.
struct TensorType final : NodeOf<TensorType, TypeNode> {
  std::optional<std::vector<Expr>> shape;  // int64 expressions
  DType dtype;                             // void: unknown
  int64_t ndim;

  TensorType(std::vector<Expr> shape, DType dtype, Origin origin = {});
  TensorType(DType dtype, int64_t ndim, Origin origin = {});  // shape unknown
  static Ref<TensorType> of(const std::vector<int64_t>& shape, DType dtype);
  bool has_shape() const { return shape.has_value(); }
  const Expr& dim(int64_t i) const { return shape->at(static_cast<size_t>(i < 0 ? i + ndim : i)); }
  /// The dimensions, where all are constant.
  std::optional<std::vector<int64_t>> static_shape() const;
  void finish();
  static constexpr TypeKind kKind = TypeKind::kTensor;
  static constexpr std::string_view kName = "Tensor";
  static std::vector<FieldInfo> fields();
};

/// A shape as a value.
struct ShapeType final : NodeOf<ShapeType, TypeNode> {
  std::optional<std::vector<Expr>> values;
  int64_t ndim;

  explicit ShapeType(std::vector<Expr> values, Origin origin = {});
  explicit ShapeType(int64_t ndim, Origin origin = {});
  void finish();
  static constexpr TypeKind kKind = TypeKind::kShape;
  static constexpr std::string_view kName = "Shape";
  static std::vector<FieldInfo> fields();
};

/// A scalar; `value` where it is known.
struct PrimType final : NodeOf<PrimType, TypeNode> {
  DType dtype;
  Expr value;  // may be null

  explicit PrimType(DType dtype, Expr value = {}, Origin origin = {});
  void finish() {}
  static constexpr TypeKind kKind = TypeKind::kPrim;
  static constexpr std::string_view kName = "Prim";
  static std::vector<FieldInfo> fields();
};

struct TupleType final : NodeOf<TupleType, TypeNode> {
  std::vector<Type> types;

  explicit TupleType(std::vector<Type> types, Origin origin = {});
  void finish() {}
  static constexpr TypeKind kKind = TypeKind::kTuple;
  static constexpr std::string_view kName = "TupleType";
  static std::vector<FieldInfo> fields();
};

/// A function as a value. Without `params` its signature is unknown.
struct FuncType final : NodeOf<FuncType, TypeNode> {
  std::optional<std::vector<Type>> params;
  Type result;
  bool pure;

  FuncType(std::optional<std::vector<Type>> params, Type result, bool pure = true,
           Origin origin = {});
  void finish() {}
  static constexpr TypeKind kKind = TypeKind::kFunc;
  static constexpr std::string_view kName = "Callable";
  static std::vector<FieldInfo> fields();
};

inline Type void_type() { return make<TupleType>(std::vector<Type>{}); }

/// A short text for messages, in TVMScript's spelling: `R.Tensor((n, 4), "float32")`.
std::string str(const Type& type);

}  // namespace tenon::graph
