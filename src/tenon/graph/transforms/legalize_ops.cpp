// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_map>

#include "tenon/graph/kernels.h"
#include "tenon/graph/transforms.h"
#include "tenon/graph/transforms/rebuild.h"

namespace tenon::graph {

namespace {

/// Lowerings that gave one call of one PrimFunc, by what a lowering may look at: the operator, its
/// attributes, and of the arguments the types, the values of those that are not variables, and
/// which of them are the same. A network of many equal operators builds each kernel once.
class Lowerings {
 public:
  std::optional<Value> find(BlockBuilder& builder, const Call& call) {
    if (!describe(call)) return std::nullopt;
    const auto [begin, end] = known_.equal_range(hash_);
    for (auto it = begin; it != end; ++it) {
      const Known& known = it->second;
      if (!is_alike(*known.call, call)) continue;
      std::vector<Value> items;
      for (const size_t i : known.operands) items.push_back(operands_[i]);
      std::vector<Value> args = known.lowered->args;
      args[1] = make<Tuple>(std::move(items));
      return builder.emit(make<Call>(known.lowered->op, std::move(args), known.lowered->attrs,
                                     known.lowered->type_args, builder.origin()));
    }
    return std::nullopt;
  }

  /// `result` is what the lowering of the call last looked for gave, after `before` bindings.
  void add(const BlockBuilder& builder, const Call& call, const Value& result, size_t before) {
    if (operands_.empty() || builder.emitted() != before + 1 || !builder.last().var.same_as(result))
      return;
    const auto* lowered = builder.last().value.as<Call>();
    if (!lowered || !lowered->is("call_tir")) return;
    Known known{ref_to(&call), ref_to(lowered), {}};
    for (const Value& item : lowered->args[1].as<Tuple>()->values) {
      const auto at = std::find_if(operands_.begin(), operands_.end(),
                                   [&](const Value& arg) { return arg.same_as(item); });
      if (at == operands_.end()) return;
      known.operands.push_back(static_cast<size_t>(at - operands_.begin()));
    }
    known_.emplace(hash_, std::move(known));
  }

 private:
  struct Known {
    Ref<Call> call, lowered;
    std::vector<size_t> operands;  // of the call_tir, among the call's
  };

  // Arguments, items of tuples one by one.
  static void flatten(const std::vector<Value>& args, std::vector<Value>& out) {
    for (const Value& arg : args) {
      const auto* tuple = arg.as<Tuple>();
      if (tuple)
        flatten(tuple->values, out);
      else
        out.push_back(arg);
    }
  }

  // Sets operands_ and hash_; false where the call is not looked up.
  bool describe(const Call& call) {
    operands_.clear();
    std::vector<Value> operands;
    flatten(call.args, operands);
    constexpr size_t kMostOperands = 64;  // which of them are the same is found by comparing all
    if (operands.size() > kMostOperands) return false;
    hash_ = hash_combine(reinterpret_cast<uintptr_t>(call.op), operands.size());
    for (const Value& arg : operands) {
      if (!arg) return false;
      if (const auto* constant = arg.as<Constant>()) {
        if (constant->data->elements() != 1) return false;  // its values may matter
      }
      hash_ =
          hash_combine(hash_, structural_hash(arg.as<Var>() ? arg.as<Var>()->type : type_of(arg)));
    }
    operands_ = std::move(operands);
    return !operands_.empty();
  }

  bool is_alike(const Call& known, const Call& call) const {
    if (known.op != call.op || !(known.attrs == call.attrs) ||
        known.type_args.size() != call.type_args.size() || known.args.size() != call.args.size())
      return false;
    for (size_t i = 0; i < call.type_args.size(); ++i)
      if (!structural_equal(known.type_args[i], call.type_args[i])) return false;
    for (size_t i = 0; i < call.args.size(); ++i) {
      const auto* a = known.args[i].as<Tuple>();
      const auto* b = call.args[i].as<Tuple>();
      if (!a != !b || (a && !structural_equal(type_of(known.args[i]), type_of(call.args[i]))))
        return false;
    }
    std::vector<Value> others;
    flatten(known.args, others);
    if (others.size() != operands_.size()) return false;
    for (size_t i = 0; i < others.size(); ++i) {
      const auto* a = others[i].as<Var>();
      const auto* b = operands_[i].as<Var>();
      if (!a != !b ||
          !(a ? structural_equal(a->type, b->type) : structural_equal(others[i], operands_[i])))
        return false;
      for (size_t k = 0; k < i; ++k)
        if (others[k].same_as(others[i]) != operands_[k].same_as(operands_[i])) return false;
    }
    return true;
  }

  std::unordered_multimap<uint64_t, Known> known_;  // looked up only
  std::vector<Value> operands_;                     // of the call last looked for
  uint64_t hash_ = 0;
};

}  // namespace

// In a program, kernels that nothing calls may go from here on, and declarations of operators.
static IRModule without_kernels(IRModule module, const KernelTable& kernels) {
  if (!module.contains("main")) return module;
  const auto hide = [&](const std::string& name, const auto& function) {
    module.set(name, with(function, [](auto& copy) { copy.is_private = true; }));
  };
  for (const OperatorKernel& kernel : kernels.kernels())
    if (!kernel.function->is_private) hide(kernel.name, kernel.function);
  const std::vector<IRModule::Entry> entries = module.functions();
  for (const auto& [name, function] : entries)
    if (declares_operator(*function) && !function->is_private) hide(name, *function.as<Function>());
  return module;
}

// One binding in terms of kernels and simpler operators; nothing where it stays.
static std::optional<Value> legalize(BlockBuilder& builder, const Binding& binding,
                                     const Value& value, const KernelTable& kernels,
                                     Lowerings& lowerings) {
  const auto* call = value.as<Call>();
  if (!call) return std::nullopt;
  if (auto own = kernels.use(builder, *call)) return own;
  if (!call->op || call->op->traits.legal) return std::nullopt;
  if (call->op->traits.view) {
    const Type type = type_of(value);
    const auto* tensor = type.as<TensorType>();
    if (tensor && tensor->has_shape())
      return builder.op("reshape", {call->args.at(0), make<ShapeExpr>(*tensor->shape)}, {},
                        binding.var->name);
  }
  if (!call->op->lower) {
    if (!call->op->pure) return std::nullopt;  // print, assert: lowering the graph decides
    throw CompileError(kUnsupported, call->origin, "operator `{}` has no lowering", call->op->name);
  }
  if (auto known = lowerings.find(builder, *call)) return known;
  const size_t before = builder.emitted();
  Value result = call->op->lower(builder, *call);
  lowerings.add(builder, *call, result, before);
  return result;
}

IRModule legalize_ops(IRModule module) {
  const KernelTable kernels(module, UserPlacement::of(module).nodes);
  Lowerings lowerings;
  constexpr int kMostRounds = 16;  // a lowering may give operators again; each round lowers those
  for (int round = 0; round < kMostRounds; ++round) {
    bool changed = false;
    const BindingRule rule = [&](BlockBuilder& builder, const Binding& binding,
                                 const Value& value) {
      auto result = legalize(builder, binding, value, kernels, lowerings);
      changed |= result.has_value();
      return result;
    };
    const std::vector<IRModule::Entry> entries = module.functions();
    for (const auto& [name, function] : entries) {
      const auto graph = cast<Function>(function);
      // The body of a declared operator is its meaning, whatever kernels compute it.
      if (graph && !declares_operator(*graph)) module.set(name, rebuild(module, graph, rule));
    }
    if (!changed) return without_kernels(std::move(module), kernels);
  }
  throw InternalError("operators still give operators after 16 rounds of LegalizeOps");
}

}  // namespace tenon::graph
