// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/transforms/known_dims.h"

#include <algorithm>
#include <unordered_set>

#include "tenon/ir/visit.h"

namespace tenon::graph {

const std::vector<Expr>* dims_of(const Type& type) {
  if (const auto* tensor = type.as<TensorType>(); tensor && tensor->shape) return &*tensor->shape;
  const auto* shape = type.as<ShapeType>();
  return shape && shape->values ? &*shape->values : nullptr;
}

Ref<Function> with_dims_of_inputs(const Function& function) {
  std::unordered_set<const Node*> given;
  for (const Ref<Var>& param : function.params)
    walk<tenon::Var>(param->type, [&](const tenon::Var& var) { given.insert(&var); });
  Substitution dims;
  walk<Binding>(function.body, [&](const Binding& binding) {
    const auto* seen = binding.match ? dims_of(type_of(binding.value)) : nullptr;
    const auto* wanted = seen ? dims_of(binding.match) : nullptr;
    // Numbers that are read while the program runs: from here on such a variable is known.
    if (binding.match && !seen)
      walk<tenon::Var>(binding.match, [&](const tenon::Var& var) { given.insert(&var); });
    for (size_t i = 0; wanted && i < std::min(seen->size(), wanted->size()); ++i)
      if (const auto* var = (*wanted)[i].as<tenon::Var>(); var && !given.count(var))
        dims.try_emplace(var, substitute((*seen)[i], dims));
  });
  return with(function, [&](Function& copy) { copy.body = substitute(copy.body, dims); });
}

}  // namespace tenon::graph
