// SPDX-License-Identifier: Apache-2.0
// DataflowUseInplaceCalls: calls of kernels that may write their result over an argument that
// nobody needs afterwards do so.

#include <map>

#include "tenon/graph/extern_call.h"
#include "tenon/graph/transforms.h"
#include "tenon/graph/transforms/lifetimes.h"
#include "tenon/graph/transforms/rebuild.h"
#include "tenon/support/remarks.h"
#include "tenon/tir/schedule/in_place.h"

namespace tenon::graph {

namespace {

using tir::PrimFunc;

// The argument whose memory each output takes, or -1.
using Places = std::vector<int64_t>;

bool is_same_tensor(const Type& a, const Type& b) {
  const auto* x = a.as<TensorType>();
  const auto* y = b.as<TensorType>();
  return x && y && x->shape && y->shape && x->dtype == y->dtype &&
         std::equal(x->shape->begin(), x->shape->end(), y->shape->begin(), y->shape->end(),
                    [](const Expr& l, const Expr& r) { return structural_equal(l, r); });
}

class InplaceCalls {
 public:
  InplaceCalls(IRModule& module, const MayShareMemory& may_share)
      : module_(module), may_share_(may_share) {
    // How often each kernel is named at all, to know when nobody needs it any more.
    const std::vector<IRModule::Entry> entries = module.functions();
    for (const auto& [name, function] : entries) {
      const auto* graph = function.as<Function>();
      const auto* kernel = function.as<PrimFunc>();
      const NodePtr body = graph    ? NodePtr(graph->body)
                           : kernel ? NodePtr(kernel->body)
                                    : NodePtr();
      if (!body) continue;
      // A node that two places share counts twice: binding by binding.
      if (graph)
        walk<Binding>(body, [&](const Binding& binding) {
          walk<FuncRef>(binding.value, [&](const FuncRef& ref) { ++named_[ref.name]; });
        });
      else
        walk<GlobalVar>(body, [&](const GlobalVar& ref) { ++named_[ref.name]; });
    }
  }

  void decide(const Function& function) {
    const Lifetimes lifetimes(function);
    walk<Binding>(function.body, [&](const Binding& binding) {
      const auto* call = binding.value.as<Call>();
      if (!call || !call->is("call_tir") || binding.match) return;
      const auto* callee = call->args[0].as<FuncRef>();
      const Places places = places_of(binding, *call, lifetimes);
      if (places.empty()) return;
      ++changed_[{callee->name, places}];
      decided_[&binding] = places;
    });
  }

  Ref<Function> apply(const Ref<Function>& function) {
    return rebuild(module_, function,
                   [&](BlockBuilder& builder, const Binding& binding, const Value& value) {
                     return replace(builder, binding, value);
                   });
  }

 private:
  Places places_of(const Binding& binding, const Call& call, const Lifetimes& lifetimes) {
    const auto kernel = module_.find<PrimFunc>(call.args[0].as<FuncRef>()->name);
    const auto* args = call.args[1].as<Tuple>();
    if (!kernel || !args || kernel->attrs.flag("tenon.inline")) return {};
    const std::vector<Type> types = output_types(call);
    Places places(types.size(), -1);
    std::vector<bool> is_taken(args->values.size());
    bool found = false;
    for (size_t i = 0; i < types.size(); ++i)
      for (size_t j = 0; j < is_taken.size() && places[i] < 0; ++j) {
        const Value& arg = args->values[j];
        if (is_taken[j] || !lifetimes.ends_in(binding, arg) ||
            !is_same_tensor(type_of(arg), types[i]) || !may_share(kernel, j, is_taken.size() + i))
          continue;
        places[i] = static_cast<int64_t>(j);
        is_taken[j] = found = true;
      }
    return found ? places : Places();
  }

  bool may_share(const Ref<PrimFunc>& kernel, size_t input, size_t output) {
    const auto [it, is_new] = known_.try_emplace({kernel.get(), input, output}, false);
    if (is_new) it->second = may_share_(*kernel, input, output);
    return it->second;
  }

  // The kernel that works in place: under the name of the other one, where nobody needs that.
  std::string variant(const std::string& name, const Places& places, size_t inputs) {
    std::string& made = variants_[{name, places}];
    if (!made.empty()) return made;
    Ref<PrimFunc> kernel = module_.find<PrimFunc>(name);
    const bool is_needed = !kernel->is_private || named_[name] != changed_[{name, places}];
    for (size_t i = places.size(); i-- > 0;)
      if (places[i] >= 0)
        kernel = tir::in_place(*kernel, static_cast<size_t>(places[i]), inputs + i);
    if (!is_needed) module_.set(name, kernel);
    made = is_needed ? module_.add_unique(name + "_inplace", kernel) : name;
    return made;
  }

  std::optional<Value> replace(BlockBuilder& builder, const Binding& binding, const Value& value) {
    const auto decision = decided_.find(&binding);
    if (decision == decided_.end()) return std::nullopt;
    const Places& places = decision->second;
    const auto* call = value.as<Call>();
    const std::string name = call->args[0].as<FuncRef>()->name;
    const auto& inputs = call->args[1].as<Tuple>()->values;
    const std::string made = variant(name, places, inputs.size());
    std::string over;
    for (const int64_t place : places) {
      if (place < 0) continue;
      const auto* arg = inputs[static_cast<size_t>(place)].as<Var>();
      over += fmt::format("{}`{}`", over.empty() ? "over " : ", ", arg ? arg->name : "a value");
    }
    record({"DataflowUseInplaceCalls", name, "in-place", "", {}, over, call->origin});
    std::vector<Value> args = call->args;
    args[0] = make<FuncRef>(made);
    return builder.emit(
        make<Call>(find_op("call_tir_inplace"), std::move(args), Attrs{{"inplace_indices", places}},
                   call->type_args, call->origin),
        binding.var->name);
  }

  IRModule& module_;
  const MayShareMemory& may_share_;
  std::map<std::string, int64_t> named_;
  std::map<std::pair<std::string, Places>, int64_t> changed_;
  std::map<std::pair<std::string, Places>, std::string> variants_;
  std::map<std::tuple<const Node*, size_t, size_t>, bool> known_;  // looked up only
  std::unordered_map<const Binding*, Places> decided_;
};

}  // namespace

IRModule use_inplace_calls(IRModule module) {
  return use_inplace_calls(std::move(module), tir::may_share_memory);
}

IRModule use_inplace_calls(IRModule module, const MayShareMemory& may_share) {
  const std::vector<IRModule::Entry> entries = module.functions();
  InplaceCalls calls(module, may_share);
  for (const auto& [name, function] : entries)
    if (const auto graph = cast<Function>(function)) calls.decide(*graph);
  for (const auto& [name, function] : entries)
    if (const auto graph = cast<Function>(function)) module.set(name, calls.apply(graph));
  return module;
}

}  // namespace tenon::graph
