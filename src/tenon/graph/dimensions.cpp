// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/dimensions.h"

#include <fmt/format.h>

#include <unordered_set>

#include "tenon/graph/shape.h"
#include "tenon/ir/visit.h"

namespace tenon::graph {

using Variables = std::unordered_set<const Node*>;

void each_dimension(const Type& type, const std::function<void(const Expr&)>& visit) {
  const auto all = [&](const std::vector<Expr>& values) {
    for (const Expr& value : values) visit(value);
  };
  if (const auto* tensor = type.as<TensorType>(); tensor && tensor->shape) all(*tensor->shape);
  if (const auto* shape = type.as<ShapeType>(); shape && shape->values) all(*shape->values);
  if (const auto* scalar = type.as<PrimType>(); scalar && scalar->value) visit(scalar->value);
  if (const auto* tuple = type.as<TupleType>())
    for (const Type& item : tuple->types) each_dimension(item, visit);
}

static void collect_bare(const Type& type, Variables& known) {
  each_dimension(type, [&](const Expr& dim) {
    if (dim.as<tenon::Var>()) known.insert(dim.get());
  });
}

static bool follows(const NodePtr& root, const Variables& known) {
  bool all = true;
  walk<tenon::Var>(root, [&](const tenon::Var& var) { all &= known.count(&var) != 0; });
  return all;
}

bool defines_dimensions(const Function& function) {
  Variables known;
  for (const Ref<Var>& param : function.params) collect_bare(param->type, known);
  walk<Binding>(function.body, [&](const Binding& binding) {
    if (binding.match) collect_bare(binding.match, known);
  });
  // A function inside has dimensions of its own.
  walk<Function>(function.body, [&](const Function& inner) {
    for (const Ref<Var>& param : inner.params) collect_bare(param->type, known);
  });
  for (const Ref<Var>& param : function.params)
    if (!follows(param->type, known)) return false;
  return follows(function.body, known);
}

// The first dimension of a parameter whose variables are not known; null where there is none.
static Expr open_dimension(const Function& function) {
  Variables known;
  for (const Ref<Var>& param : function.params) collect_bare(param->type, known);
  Expr open;
  for (const Ref<Var>& param : function.params)
    each_dimension(param->type, [&](const Expr& dim) {
      if (!open && !follows(dim, known)) open = dim;
    });
  return open;
}

Ref<Function> with_own_dimensions(Ref<Function> function) {
  // Each round makes one more dimension a variable.
  for (int n = 0;; ++n) {
    const Expr open = open_dimension(*function);
    if (!open) return function;
    const auto own = tenon::Var::size(fmt::format("dim_{}", n), open->dtype);
    const Expr canonical = simplify_dim(open);
    function = rewrite(function, [&](const NodePtr& node) -> std::optional<NodePtr> {
      const auto expr = cast<ExprNode>(node);
      if (!expr || expr->dtype != open->dtype || as_int(expr) || expr.as<tenon::Var>() ||
          !structural_equal(simplify_dim(expr), canonical))
        return std::nullopt;
      return own;
    });
  }
}

}  // namespace tenon::graph
