// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "tenon/graph/infer.h"
#include "tenon/graph/shape.h"
#include "tenon/graph/transforms.h"
#include "tenon/graph/transforms/rebuild.h"
#include "tenon/support/nearest.h"

namespace tenon::graph {

// `function` with `params` and `values` for what they replace, its types inferred anew.
static Ref<Function> substituted(IRModule& module, const Ref<Function>& function,
                                 std::vector<Ref<Var>> params, const Substitution& values,
                                 Attrs attrs) {
  Substitution all = values;
  for (Ref<Var>& param : params) {
    const Type type = substitute(param->type, values);
    if (structural_equal(type, param->type)) continue;
    auto typed = make<Var>(param->name, type, false, param->origin);
    all.emplace(param.get(), typed);
    param = typed;
  }
  const Ref<SeqExpr> body =
      rewrite(substitute(function->body, all), [](const NodePtr& node) -> std::optional<NodePtr> {
        const auto* shape = node.as<ShapeExpr>();
        if (!shape) return std::nullopt;
        std::vector<Expr> dims;
        for (const Expr& dim : shape->values) dims.push_back(simplify_dim(dim));
        return make<ShapeExpr>(std::move(dims), shape->origin);
      });
  const Ref<Function> copy = with(make<Function>(std::move(params), body, Type(), std::move(attrs),
                                                 function->pure, function->origin),
                                  [&](Function& made) { made.is_private = function->is_private; });
  const NodePtr keeper = function;  // what `all` is keyed by
  return with_inferred_types(module, copy);
}

// Lists that have an item for each parameter lose those of the parameters that go.
static Attrs without_params(Attrs attrs, const std::vector<bool>& gone) {
  if (const auto names = attrs.strings("input_names"); names && names->size() == gone.size()) {
    std::vector<std::string> kept;
    for (size_t i = 0; i < gone.size(); ++i)
      if (!gone[i]) kept.push_back((*names)[i]);
    attrs.set("input_names", kept);
  }
  if (const auto inputs = attrs.get<int64_t>("num_input")) {
    int64_t kept = *inputs;
    for (size_t i = 0; i < gone.size() && static_cast<int64_t>(i) < *inputs; ++i) kept -= gone[i];
    attrs.set("num_input", kept);
  }
  return attrs;
}

static void check_bound(const Var& param, const TensorData& data, const Substitution& dims) {
  const auto* type = param.type.as<TensorType>();
  if (!type)
    throw CompileError(kTypeMismatch, param.origin, "parameter `{}` is a {}; expected a tensor",
                       param.name, str(param.type));
  if (!type->dtype.is_void() && type->dtype != data.dtype)
    throw CompileError(kDTypeMismatch, param.origin,
                       "parameter `{}` is given elements of {}; expected {}", param.name,
                       data.dtype.str(), type->dtype.str());
  const bool has_rank = type->ndim < 0 || type->ndim == static_cast<int64_t>(data.shape.size());
  bool fits = has_rank;
  for (size_t i = 0; fits && type->shape && i < data.shape.size(); ++i)
    fits = dims_agree(substitute((*type->shape)[i], dims), int64(data.shape[i])) != DimsAgree::kNo;
  if (!fits)
    throw CompileError(kShapeMismatch, param.origin,
                       "parameter `{}` is given shape {}; expected {}", param.name,
                       tenon::str(data.shape), str(param.type));
}

static std::vector<std::string> graph_functions(const IRModule& module) {
  std::vector<std::string> names;
  for (const auto& [name, function] : module.functions())
    if (function.as<Function>()) names.push_back(name);
  return names;
}

IRModule bind_params(IRModule module, const std::map<std::string, Ref<TensorData>>& params,
                     const std::string& name) {
  const auto function = module.find<Function>(name);
  if (!function)
    throw CompileError(kUndefined, {},
                       "the module has no graph function `{}` to bind parameters of{}", name,
                       did_you_mean(name, graph_functions(module)));
  std::vector<std::string> names;
  for (const Ref<Var>& param : function->params) names.push_back(param->name);
  for (const auto& [wanted, data] : params) {
    const auto count = std::count(names.begin(), names.end(), wanted);
    if (count == 0)
      throw CompileError(kUndefined, function->origin, "function `{}` has no parameter `{}`{}",
                         name, wanted, did_you_mean(wanted, names));
    if (count > 1)
      throw CompileError(kUndefined, function->origin, "function `{}` has {} parameters `{}`", name,
                         count, wanted);
  }
  Substitution values;
  std::vector<Ref<Var>> kept;
  std::vector<bool> gone;
  for (const Ref<Var>& param : function->params) {
    const auto found = params.find(param->name);
    gone.push_back(found != params.end());
    if (found == params.end()) {
      kept.push_back(param);
      continue;
    }
    const auto constant = make<Constant>(found->second, param->origin);
    unify(param->type, constant->type, values);
    check_bound(*param, *found->second, values);
    values.emplace(param.get(), constant);
  }
  module.set(name, substituted(module, function, std::move(kept), values,
                               without_params(function->attrs, gone)));
  return module;
}

// The symbolic dimensions that the parameters have.
static std::vector<Ref<tenon::Var>> dims_of(const Function& function) {
  std::vector<Ref<tenon::Var>> dims;
  std::set<const Node*> seen;
  for (const Ref<Var>& param : function.params)
    walk(param->type, [&](const NodePtr& node) {
      if (const auto dim = cast<tenon::Var>(node); dim && seen.insert(dim.get()).second)
        dims.push_back(dim);
    });
  return dims;
}

IRModule bind_symbolic_vars(IRModule module, const std::map<std::string, int64_t>& dims,
                            const std::optional<std::string>& only) {
  if (only && !module.find<Function>(*only))
    throw CompileError(kUndefined, {},
                       "the module has no graph function `{}` to bind dimensions of{}", *only,
                       did_you_mean(*only, graph_functions(module)));
  std::set<std::string> bound;
  std::vector<std::string> known;
  const std::vector<IRModule::Entry> entries = module.functions();
  for (const auto& [name, base] : entries) {
    const auto function = cast<Function>(base);
    if (!function || (only ? name != *only : function->is_private)) continue;
    Substitution values;
    for (const Ref<tenon::Var>& dim : dims_of(*function)) {
      known.push_back(dim->name);
      const auto found = dims.find(dim->name);
      if (found == dims.end()) continue;
      values.emplace(dim.get(), make<IntImm>(dim->dtype, found->second));
      bound.insert(dim->name);
    }
    if (values.empty()) continue;
    module.set(name, substituted(module, function, function->params, values, function->attrs));
  }
  for (const auto& [dim, value] : dims)
    if (!bound.count(dim))
      throw CompileError(kUndefined, {}, "no {} has a dimension `{}`{}",
                         only ? "parameter of `" + *only + "`" : "parameter of a public function",
                         dim, did_you_mean(dim, known));
  return module;
}

}  // namespace tenon::graph
