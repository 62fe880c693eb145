// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/patterns/type_match.h"

#include "tenon/graph/shape.h"
#include "tenon/ir/visit.h"

namespace tenon::graph {

void DimBindings::undo(Mark mark) {
  while (log_.size() > mark.bound) {
    bound_.erase(log_.back());
    log_.pop_back();
  }
  pending_.resize(mark.pending);
}

bool DimBindings::match(const Expr& pattern, const Expr& dim) {
  if (pattern.as<tenon::Var>()) {
    const auto [known, is_new] = bound_.emplace(pattern.get(), dim);
    if (is_new) {
      log_.push_back(pattern.get());
      return true;
    }
    return dims_agree(known->second, dim) == DimsAgree::kYes;
  }
  if (const auto number = as_int(pattern)) return as_int(dim) == number;
  pending_.emplace_back(pattern, dim);
  return true;
}

bool DimBindings::match(const std::vector<Expr>& pattern, const std::vector<Expr>& dims) {
  if (pattern.size() != dims.size()) return false;
  for (size_t i = 0; i < dims.size(); ++i)
    if (!match(pattern[i], dims[i])) return false;
  return true;
}

bool DimBindings::settled() const {
  if (pending_.empty()) return true;
  const Substitution known(bound_.begin(), bound_.end());
  for (const auto& [pattern, dim] : pending_)
    if (dims_agree(substitute(pattern, known), dim) != DimsAgree::kYes) return false;
  return true;
}

std::unordered_map<const Node*, NodePtr> DimBindings::values() const {
  return {bound_.begin(), bound_.end()};
}

bool allows(const Type& declared, const Type& given, DimBindings& dims) {
  if (!declared || declared.as<ObjectType>()) return true;
  if (const auto* wanted = declared.as<TensorType>()) {
    const auto* is = given.as<TensorType>();
    if (!is) return false;
    if (!wanted->dtype.is_void() && wanted->dtype != is->dtype) return false;
    if (wanted->ndim >= 0 && wanted->ndim != is->ndim) return false;
    return !wanted->shape || (is->shape && dims.match(*wanted->shape, *is->shape));
  }
  if (const auto* wanted = declared.as<TupleType>()) {
    const auto* is = given.as<TupleType>();
    if (!is || is->types.size() != wanted->types.size()) return false;
    for (size_t i = 0; i < is->types.size(); ++i)
      if (!allows(wanted->types[i], is->types[i], dims)) return false;
    return true;
  }
  if (const auto* wanted = declared.as<ShapeType>()) {
    const auto* is = given.as<ShapeType>();
    if (!is || (wanted->ndim >= 0 && wanted->ndim != is->ndim)) return false;
    return !wanted->values || (is->values && dims.match(*wanted->values, *is->values));
  }
  if (const auto* wanted = declared.as<PrimType>()) {
    const auto* is = given.as<PrimType>();
    if (!is || (!wanted->dtype.is_void() && wanted->dtype != is->dtype)) return false;
    return !wanted->value || (is->value && dims.match(wanted->value, is->value));
  }
  if (const auto* wanted = declared.as<FuncType>()) {
    const auto* is = given.as<FuncType>();
    if (!is) return false;
    if (!wanted->params) return true;
    if (!is->params || is->params->size() != wanted->params->size()) return false;
    for (size_t i = 0; i < is->params->size(); ++i)
      if (!allows((*wanted->params)[i], (*is->params)[i], dims)) return false;
    return allows(wanted->result, is->result, dims);
  }
  return structural_equal(declared, given);
}

bool same_attr(const AttrValue& a, const AttrValue& b) {
  if (a == b) return true;
  const auto number = [](const AttrValue& value) -> std::optional<double> {
    if (const auto* integer = value.as<int64_t>()) return static_cast<double>(*integer);
    if (const auto* flag = value.as<bool>()) return *flag ? 1 : 0;
    if (const auto* real = value.as<double>()) return *real;
    return std::nullopt;
  };
  if (number(a) && number(b)) return number(a) == number(b);
  const auto text = [](const AttrValue& value) -> std::optional<std::string> {
    if (const auto* dtype = value.as<DType>()) return dtype->is_void() ? "" : dtype->str();
    if (const auto* string = value.as<std::string>()) return *string;
    return std::nullopt;
  };
  if (text(a) && text(b)) return text(a) == text(b);
  const auto* x = a.as<AttrList>();
  const auto* y = b.as<AttrList>();
  if (!x || !y || x->empty() || y->empty()) return false;
  const AttrList& less = x->size() < y->size() ? *x : *y;
  const AttrList& more = x->size() < y->size() ? *y : *x;
  if (more.size() % less.size() != 0) return false;
  for (size_t i = 0; i < more.size(); ++i)
    if (!same_attr(more[i], less[i % less.size()])) return false;
  return true;
}

std::optional<std::vector<Expr>> proper_dims(const Type& type) {
  const auto* tensor = type.as<TensorType>();
  if (!tensor || !tensor->shape) return std::nullopt;
  std::vector<Expr> out;
  for (const Expr& dim : *tensor->shape)
    if (!is_int(dim, 1)) out.push_back(dim);
  return out;
}

}  // namespace tenon::graph
