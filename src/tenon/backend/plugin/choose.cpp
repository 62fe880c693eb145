// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/plugin/choose.h"

#include "tenon/graph/transforms.h"
#include "tenon/script/printer.h"
#include "tenon/tir/stmt.h"

namespace tenon::plugin {

// The call alone, over parameters of its arguments' types, by the pass that everything goes
// through: the kernels of the module (a user's own among them) are asked as they would be.
static std::optional<std::string> legalised(const IRModule& module, const graph::Binding& binding) {
  const auto* call = binding.value.as<graph::Call>();
  if (!call || !call->op) return std::nullopt;
  std::vector<Ref<graph::Var>> params;
  std::vector<graph::Value> args;
  for (const graph::Value& arg : call->args) {
    const auto* var = arg.as<graph::Var>();
    if (var && var->type.as<graph::TensorType>()) {
      params.push_back(make<graph::Var>(var->name, var->type));
      args.push_back(params.back());
    } else {
      args.push_back(arg);
    }
  }
  const auto result = make<graph::Var>("result", binding.var->type);
  const auto copy = make<graph::Call>(call->op, args, call->attrs, call->type_args, call->origin);
  const auto block = make<graph::BindingBlock>(
      std::vector<Ref<graph::Binding>>{make<graph::Binding>(result, copy)}, false);
  const auto body =
      make<graph::SeqExpr>(std::vector<Ref<graph::BindingBlock>>{block}, graph::Value(result));
  IRModule alone;
  alone.attrs = module.attrs;
  for (const auto& [name, function] : module.functions())
    if (function.as<tir::PrimFunc>()) alone.set(name, function);
  constexpr const char* kName = "call_that_is_asked_about";
  alone.set(kName, make<graph::Function>(params, body));
  alone = graph::legalize_ops(std::move(alone));
  std::optional<std::string> found;
  int calls = 0;
  walk<graph::Call>(alone.find(kName), [&](const graph::Call& made) {
    if (!made.is("call_tir")) return;
    ++calls;
    if (const auto* ref = made.args.at(0).as<graph::FuncRef>()) found = ref->name;
  });
  if (calls != 1 || !found) return std::nullopt;
  IRModule kernel;
  kernel.set(*found, alone.find(*found));
  return script::print(kernel);
}

template <typename Wanted>
static std::optional<std::string> find(const IRModule& module, const graph::Function& function,
                                       const Wanted& wanted) {
  for (const Ref<graph::BindingBlock>& block : function.body->blocks)
    for (const Ref<graph::Binding>& binding : block->bindings)
      if (binding->value.as<graph::Call>() && wanted(*binding)) return legalised(module, *binding);
  return std::nullopt;
}

std::optional<std::string> chosen_kernel(const IRModule& module, const graph::Function& function,
                                         int32_t index) {
  return find(module, function, [&](const graph::Binding&) { return index-- == 0; });
}

std::optional<std::string> chosen_kernel(const IRModule& module, const graph::Function& function,
                                         const std::string& variable) {
  return find(module, function,
              [&](const graph::Binding& binding) { return binding.var->name == variable; });
}

}  // namespace tenon::plugin
