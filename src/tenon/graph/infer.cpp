// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/infer.h"

#include <unordered_set>

#include "tenon/graph/shape.h"

namespace tenon::graph {

void unify(const Type& declared, const Type& given, Substitution& bound) {
  const auto match = [&](const std::vector<Expr>& a, const std::vector<Expr>& b) {
    for (size_t i = 0; i < a.size() && a.size() == b.size(); ++i)
      if (a[i].as<tenon::Var>()) bound.emplace(a[i].get(), b[i]);
  };
  if (const auto* a = declared.as<TensorType>()) {
    const auto* b = given.as<TensorType>();
    if (b && a->shape && b->shape) match(*a->shape, *b->shape);
  } else if (const auto* a = declared.as<ShapeType>()) {
    const auto* b = given.as<ShapeType>();
    if (b && a->values && b->values) match(*a->values, *b->values);
  } else if (const auto* a = declared.as<TupleType>()) {
    const auto* b = given.as<TupleType>();
    for (size_t i = 0; b && i < a->types.size() && i < b->types.size(); ++i)
      unify(a->types[i], b->types[i], bound);
  } else if (const auto* a = declared.as<PrimType>()) {
    const auto* b = given.as<PrimType>();
    if (b && a->value && b->value && a->value.as<tenon::Var>())
      bound.emplace(a->value.get(), b->value);
  }
}

// A type of the callee by what its dimensions are in the caller. Signatures in it have their own.
static Type in_caller(const Type& type, const Substitution& bound) {
  std::unordered_set<const Node*> known;
  for (const auto& [var, value] : bound) known.insert(var);
  walk<FuncType>(type, [&](const FuncType& own) {
    walk<tenon::Var>(ref_to(&own), [&](const tenon::Var& var) { known.insert(&var); });
  });
  const auto is_known = [&](const NodePtr& node) {
    bool all = true;
    walk<tenon::Var>(node, [&](const tenon::Var& var) { all &= known.count(&var) > 0; });
    return all;
  };
  const Type general = rewrite(type, [&](const NodePtr& node) -> std::optional<NodePtr> {
    const auto* tensor = node.as<TensorType>();
    const auto* shape = node.as<ShapeType>();
    const auto* prim = node.as<PrimType>();
    if ((!tensor && !shape && !prim) || is_known(node)) return std::nullopt;
    if (tensor) return make<TensorType>(tensor->dtype, tensor->ndim);
    return shape ? Type(make<ShapeType>(shape->ndim)) : Type(make<PrimType>(prim->dtype));
  });
  return substitute(general, bound);
}

Type result_type(const std::vector<Type>& params, const Type& result,
                 const std::vector<Value>& args) {
  Substitution bound;
  for (size_t i = 0; i < std::min(params.size(), args.size()); ++i)
    unify(params[i], type_of(args[i]), bound);
  return in_caller(result, bound);
}

Type type_of(const Value& value, const IRModule& module) {
  if (const auto* call = value.as<Call>(); call && !call->op && call->type_args.empty()) {
    if (const auto* ref = call->callee.as<FuncRef>()) {
      const auto function = module.find<Function>(ref->name);
      if (function && function->params.size() == call->args.size()) {
        std::vector<Type> params;
        for (const Ref<Var>& param : function->params) params.push_back(param->type);
        const Type result = function->result ? function->result : type_of(function->body->body);
        return result_type(params, result, call->args);
      }
    }
  }
  return type_of(value);
}

static bool same_dims(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return shapes_agree(a, b) == DimsAgree::kYes;
}

bool is_subtype(const Type& precise, const Type& general) {
  if (general.as<ObjectType>() || precise.same_as(general)) return true;
  if (const auto* b = general.as<TensorType>()) {
    const auto* a = precise.as<TensorType>();
    if (!a) return false;
    if (!b->dtype.is_void() && a->dtype != b->dtype) return false;
    if (b->ndim >= 0 && a->ndim != b->ndim) return false;
    return !b->shape || (a->shape && same_dims(*a->shape, *b->shape));
  }
  if (const auto* b = general.as<ShapeType>()) {
    const auto* a = precise.as<ShapeType>();
    if (!a || (b->ndim >= 0 && a->ndim != b->ndim)) return false;
    return !b->values || (a->values && same_dims(*a->values, *b->values));
  }
  if (const auto* b = general.as<PrimType>()) {
    const auto* a = precise.as<PrimType>();
    if (!a || a->dtype != b->dtype) return false;
    if (!b->value) return true;
    if (!a->value) return false;
    return structural_equal(a->value, b->value) ||
           (a->dtype.is_integer() && dims_agree(a->value, b->value) == DimsAgree::kYes);
  }
  if (const auto* b = general.as<TupleType>()) {
    const auto* a = precise.as<TupleType>();
    if (!a || a->types.size() != b->types.size()) return false;
    for (size_t i = 0; i < a->types.size(); ++i) {
      // The same again, as in a tuple of twice one tuple, needs no second look.
      const bool again =
          i > 0 && a->types[i].same_as(a->types[i - 1]) && b->types[i].same_as(b->types[i - 1]);
      if (!again && !is_subtype(a->types[i], b->types[i])) return false;
    }
    return true;
  }
  if (const auto* b = general.as<FuncType>()) {
    const auto* a = precise.as<FuncType>();
    if (!a || (b->pure && !a->pure)) return false;
    return !b->params || structural_equal(precise, general, {.map_free = true});
  }
  return structural_equal(precise, general);
}

}  // namespace tenon::graph
