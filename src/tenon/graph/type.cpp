// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/type.h"

#include <algorithm>

#include "tenon/ir/constant.h"

namespace tenon::graph {

ObjectType::ObjectType(Origin origin) : NodeOf(std::move(origin)) { finish_node(*this); }
std::vector<FieldInfo> ObjectType::fields() { return {}; }

TensorType::TensorType(std::vector<Expr> shape, DType dtype, Origin origin)
    : NodeOf(std::move(origin)), shape(std::move(shape)), dtype(dtype) {
  ndim = static_cast<int64_t>(this->shape->size());
  finish_node(*this);
}
TensorType::TensorType(DType dtype, int64_t ndim, Origin origin)
    : NodeOf(std::move(origin)), dtype(dtype), ndim(ndim) {
  finish_node(*this);
}
Ref<TensorType> TensorType::of(const std::vector<int64_t>& shape, DType dtype) {
  return make<TensorType>(to_exprs(shape), dtype);
}
void TensorType::finish() {
  if (!shape) return;
  for (Expr& dim : *shape) {
    if (!dim->dtype.is_integer() || dim->dtype.is_vector())
      throw CompileError(kDTypeMismatch, origin, "a dimension has dtype {}; expected an integer",
                         dim->dtype.str());
    if (dim->dtype != kInt64) dim = cast(kInt64, dim);
    const auto value = as_int(dim);
    if (value && *value < 0)
      throw CompileError(kOverflow, origin, "a tensor has dimension {}; expected at least 0",
                         *value);
  }
  if (const auto known = static_shape())
    checked_elements(*known, std::max<int64_t>(1, dtype.bytes()), origin);
}
std::optional<std::vector<int64_t>> TensorType::static_shape() const {
  return shape ? as_ints(*shape) : std::nullopt;
}
std::vector<FieldInfo> TensorType::fields() {
  return {field<&TensorType::shape>("shape", FieldRole::kSymbolic),
          field<&TensorType::dtype>("dtype"), field<&TensorType::ndim>("ndim")};
}

ShapeType::ShapeType(std::vector<Expr> values, Origin origin)
    : NodeOf(std::move(origin)), values(std::move(values)) {
  ndim = static_cast<int64_t>(this->values->size());
  finish_node(*this);
}
ShapeType::ShapeType(int64_t ndim, Origin origin) : NodeOf(std::move(origin)), ndim(ndim) {
  finish_node(*this);
}
void ShapeType::finish() {
  if (!values) return;
  for (Expr& value : *values)
    if (value->dtype != kInt64) value = cast(kInt64, value);
}
std::vector<FieldInfo> ShapeType::fields() {
  return {field<&ShapeType::values>("values", FieldRole::kSymbolic),
          field<&ShapeType::ndim>("ndim")};
}

PrimType::PrimType(DType dtype, Expr value, Origin origin)
    : NodeOf(std::move(origin)), dtype(dtype), value(std::move(value)) {
  finish_node(*this);
}
std::vector<FieldInfo> PrimType::fields() {
  return {field<&PrimType::dtype>("dtype"), field<&PrimType::value>("value", FieldRole::kSymbolic)};
}

TupleType::TupleType(std::vector<Type> types, Origin origin)
    : NodeOf(std::move(origin)), types(std::move(types)) {
  finish_node(*this);
}
std::vector<FieldInfo> TupleType::fields() { return {field<&TupleType::types>("types")}; }

FuncType::FuncType(std::optional<std::vector<Type>> params, Type result, bool pure, Origin origin)
    : NodeOf(std::move(origin)), params(std::move(params)), result(std::move(result)), pure(pure) {
  finish_node(*this);
}
std::vector<FieldInfo> FuncType::fields() {
  return {field<&FuncType::params>("params"), field<&FuncType::result>("result"),
          field<&FuncType::pure>("pure")};
}

std::string str(const Type& type) {
  if (!type) return "?";
  switch (kind_of(type)) {
    case TypeKind::kTensor: {
      const auto& tensor = type.to<TensorType>();
      std::string text = "R.Tensor(";
      if (tensor.shape) text += tenon::str(*tensor.shape);
      if (!tensor.dtype.is_void())
        text += (tensor.shape ? ", " : "dtype=") + ('"' + tensor.dtype.str() + '"');
      if (!tensor.shape && tensor.ndim >= 0)
        text += (tensor.dtype.is_void() ? "ndim=" : ", ndim=") + std::to_string(tensor.ndim);
      return text + ")";
    }
    case TypeKind::kShape: {
      const auto& shape = type.to<ShapeType>();
      if (shape.values) {
        std::string text = tenon::str(*shape.values);
        text.front() = '[';
        text.back() = ']';
        if (text.size() > 2 && text[text.size() - 2] == ',') text.erase(text.size() - 2, 1);
        return "R.Shape(" + text + ")";
      }
      return shape.ndim >= 0 ? fmt::format("R.Shape(ndim={})", shape.ndim) : "R.Shape";
    }
    case TypeKind::kPrim: {
      const auto& prim = type.to<PrimType>();
      return prim.value ? "R.Prim(value=" + tenon::str(prim.value) + ")"
                        : "R.Prim(\"" + prim.dtype.str() + "\")";
    }
    case TypeKind::kTuple: {
      const auto& tuple = type.to<TupleType>();
      if (tuple.types.empty()) return "R.Tuple";
      std::string text = "R.Tuple(";
      for (size_t i = 0; i < tuple.types.size(); ++i) text += (i ? ", " : "") + str(tuple.types[i]);
      return text + ")";
    }
    case TypeKind::kFunc: {
      const auto& function = type.to<FuncType>();
      if (!function.params) return "R.Callable";
      std::string text = "R.Callable((";
      for (size_t i = 0; i < function.params->size(); ++i)
        text += (i ? ", " : "") + str((*function.params)[i]);
      if (function.params->size() == 1) text += ",";
      return text + "), " + str(function.result) + ", " + (function.pure ? "True" : "False") + ")";
    }
    case TypeKind::kObject: break;
  }
  return "R.Object";
}

}  // namespace tenon::graph
