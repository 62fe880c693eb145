// SPDX-License-Identifier: Apache-2.0
// Relay's passes that hand parts of a graph to external compilers, under their names and with their
// attributes. What Relay says with the operators compiler_begin and compiler_end, a private
// function with attr `Compiler` says here: its body is what stands between them.

#include <algorithm>
#include <set>

#include "tenon/graph/backend.h"
#include "tenon/graph/infer.h"
#include "tenon/graph/op.h"
#include "tenon/graph/partition_passes.h"
#include "tenon/graph/transforms.h"
#include "tenon/graph/transforms/partition.h"
#include "tenon/graph/transforms/rebuild.h"
#include "tenon/support/remarks.h"

namespace tenon::graph {

namespace {

// "nn.conv2d_nn.relu_": Relay joins the operators' names, each with an underscore after it.
std::string operators_of(const Function& composite) {
  std::string text;
  walk<Call>(composite.body, [&](const Call& call) {
    if (call.op) text += call.op->name + "_";
  });
  return text;
}

Ref<Function> with_attrs(const Function& function, const Attrs& added) {
  return with(function, [&](Function& copy) {
    for (const auto& [name, value] : added) copy.attrs.set(name, value);
  });
}

Ref<Function> callee_of(const IRModule& module, const Binding& binding) {
  const auto* call = binding.match ? nullptr : binding.value.as<Call>();
  const auto* ref = call && !call->op ? call->callee.as<FuncRef>() : nullptr;
  return ref ? module.find<Function>(ref->name) : nullptr;
}

// A region that PartitionGraph has not named yet.
bool is_open_region(const Ref<Function>& function) {
  return function && function->attrs.get<std::string>("Compiler") &&
         !function->attrs.contains("global_symbol");
}

/// Puts what the targets support into regions of one call each.
class Annotator {
 public:
  Annotator(IRModule& module, const std::vector<std::string>& targets)
      : module_(module), targets_(targets) {}

  Ref<Function> run(const Ref<Function>& function) {
    const Matcher matcher(&module_, *function);
    return rewrite_blocks(function, [&](const BindingBlock& block, const auto&) {
      std::vector<Ref<Binding>> bindings;
      bool changed = false;
      for (const Ref<Binding>& binding : block.bindings) {
        const std::string target = target_of_binding(*function, *binding, matcher);
        Ref<Binding> next = target.empty() ? nullptr : region(binding, target);
        changed |= static_cast<bool>(next);
        bindings.push_back(next ? next : binding);
      }
      return changed ? make<BindingBlock>(std::move(bindings), block.is_dataflow, block.origin)
                     : Ref<BindingBlock>();
    });
  }

 private:
  std::string target_of_binding(const Function& function, const Binding& binding,
                                const Matcher& matcher) const {
    if (const auto composite = callee_of(module_, binding)) {
      if (!composite->attrs.contains("Composite")) return "";
      const std::string backend = backend_of(*composite);
      return std::count(targets_.begin(), targets_.end(), backend) ? backend : "";
    }
    // An operator by itself: where a pattern of the back end says so.
    const auto* call = binding.value.as<Call>();
    if (!call || !call->op || !call->op->pure || binding.match) return "";
    for (const std::string& target : targets_) {
      const auto backend = find_backend(target);
      if (!backend) continue;
      for (const FusionPattern& pattern : backend->patterns) {
        if (!pattern.pattern || pattern_size(pattern.pattern) != 1) continue;
        const auto match = matcher.match(pattern.pattern, matcher.binding_of(binding.var));
        if (!match || match->bindings.size() != 1) continue;
        const std::map<std::string, Value> annotated = annotated_values(pattern, *match);
        const Composite composite = make_composite(pattern, *match);
        const PatternCheck check{module_, function, *match, composite.function, annotated};
        if (!pattern.check || pattern.check(check).accepted) return target;
      }
    }
    return "";
  }

  Ref<Binding> region(const Ref<Binding>& binding, const std::string& target) {
    const auto outlined = outline_bindings({binding}, {binding->var},
                                           {.constants = OutlineOptions::Constants::kLifted,
                                            .param_name = {},
                                            .attrs = {{"Compiler", target}}});
    if (!outlined) return {};
    std::string& name = known_[outlined->function];
    if (name.empty()) name = module_.add_unique(identifier(target) + "_region", outlined->function);
    return make<Binding>(binding->var,
                         make<Call>(make<FuncRef>(name), outlined->arguments, Attrs(),
                                    std::vector<Type>{}, binding->value->origin),
                         Type(), binding->origin);
  }

  IRModule& module_;
  const std::vector<std::string>& targets_;
  std::unordered_map<NodePtr, std::string, StructuralHash, StructuralEqual> known_;
};

/// The calls of regions in the places of which their bodies come.
Ref<Function> inline_regions(IRModule& module, const Ref<Function>& function) {
  return rebuild(
      module, function,
      [&](BlockBuilder& builder, const Binding& binding,
          const Value& value) -> std::optional<Value> {
        const auto* call = value.as<Call>();
        const Ref<Function> callee =
            call && !call->op ? callee_of(module, *make<Binding>(binding.var, value)) : nullptr;
        if (!is_open_region(callee)) return std::nullopt;
        const Ref<Function> copy = renew_definitions(callee);
        Substitution values;
        for (size_t i = 0; i < call->args.size(); ++i) {
          unify(copy->params[i]->type, type_of(call->args[i]), values);
          values.emplace(copy->params[i].get(), call->args[i]);
        }
        const BindingRule keep = [](BlockBuilder&, const Binding&,
                                    const Value&) -> std::optional<Value> { return std::nullopt; };
        return emit_body(builder, *copy->body, values, keep);
      });
}

class RegionMerger {
 public:
  explicit RegionMerger(IRModule& module) : module_(module) {}

  Ref<BindingBlock> run(const BindingBlock& block,
                        const std::unordered_set<const Node*>& escaping) {
    BlockPartition partition(module_, block);
    std::vector<std::string> kinds;
    bool any = false;
    for (const Ref<Binding>& binding : block.bindings) {
      const Ref<Function> callee = callee_of(module_, *binding);
      kinds.push_back(is_open_region(callee) ? backend_of(*callee) : "");
      any |= !kinds.back().empty();
    }
    if (!any) return {};
    join_neighbours(block, kinds, partition);
    std::vector<Ref<Binding>> bindings;
    for (const std::vector<size_t>& group : partition.groups()) {
      std::vector<Ref<Binding>> inner;
      for (const size_t member : group) inner.push_back(block.bindings[member]);
      const std::string& target = kinds[group[0]];
      const std::vector<Ref<Var>> outputs = outputs_of(block, partition, group, escaping);
      auto outlined = group.size() == 1
                          ? std::nullopt
                          : outline_bindings(inner, outputs,
                                             {.constants = OutlineOptions::Constants::kLifted,
                                              .param_name = {},
                                              .attrs = {{"Compiler", target}}});
      if (!outlined) {
        bindings.insert(bindings.end(), inner.begin(), inner.end());
        continue;
      }
      const Origin& origin = outlined->function->origin;
      const Ref<Function> merged = inline_regions(module_, outlined->function);
      const std::string name = module_.add_unique(identifier(target) + "_region", merged);
      bind_outputs(outputs,
                   make<Call>(make<FuncRef>(name), outlined->arguments, Attrs(),
                              std::vector<Type>{}, origin),
                   type_of_outputs(outputs), block.is_dataflow, origin, bindings);
    }
    return make<BindingBlock>(std::move(bindings), block.is_dataflow, block.origin);
  }

 private:
  IRModule& module_;
};

/// Names regions, and gives them what code generators look for.
class Namer {
 public:
  Namer(IRModule& module, const PartitionOptions& options) : module_(module), options_(options) {}

  Ref<Function> run(const std::string& caller, const Ref<Function>& function) {
    return rewrite_blocks(function, [&](const BindingBlock& block, const auto&) {
      std::vector<Ref<Binding>> bindings;
      bool changed = false;
      for (const Ref<Binding>& binding : block.bindings) {
        const Ref<Function> callee = callee_of(module_, *binding);
        bindings.push_back(is_open_region(callee) ? region(caller, *binding, *callee) : binding);
        changed |= !bindings.back().same_as(binding);
      }
      return changed ? make<BindingBlock>(std::move(bindings), block.is_dataflow, block.origin)
                     : Ref<BindingBlock>();
    });
  }

 private:
  Ref<Binding> region(const std::string& caller, const Binding& binding, const Function& callee) {
    const std::string target = backend_of(callee);
    const std::string symbol =
        fmt::format("tvmgen_{}_{}_{}_{}", options_.mod_name, identifier(target), caller, count_);
    const Call& call = *binding.value.as<Call>();
    const Ref<Function> copy = renew_definitions(ref_to(&callee));
    Substitution values;
    std::vector<Ref<Var>> params;
    std::vector<Value> args;
    for (size_t i = 0; i < call.args.size(); ++i) {
      if (options_.bind_constants && call.args[i].as<Constant>()) {
        values.emplace(copy->params[i].get(), call.args[i]);
        continue;
      }
      params.push_back(
          make<Var>(fmt::format("{}_{}_i{}", identifier(target), count_, params.size()),
                    copy->params[i]->type));
      values.emplace(copy->params[i].get(), params.back());
      args.push_back(call.args[i]);
    }
    ++count_;
    const Ref<Function> function =
        with(make<Function>(params, substitute(copy->body, values), copy->result,
                            Attrs{{"Compiler", target},
                                  {"Primitive", true},
                                  {"Inline", true},
                                  {"global_symbol", symbol}},
                            true, callee.origin),
             [&](Function& made) { made.is_private = true; });
    if (const BaseFunc taken = module_.find(symbol))
      throw CompileError(kRedefined, taken->origin,
                         "PartitionGraph: the module has a function `{}` already; give another "
                         "mod_name",
                         symbol);
    // A function inside of it has definitions of its own, which are copied with it.
    module_.set(symbol, renew_definitions(with_local_composites(module_, function)));
    record({"PartitionGraph", symbol, "partitioned", target, {}, "", callee.origin});
    return make<Binding>(binding.var,
                         make<Call>(make<FuncRef>(symbol), std::move(args), Attrs(),
                                    std::vector<Type>{}, call.origin),
                         Type(), binding.origin);
  }

  IRModule& module_;
  const PartitionOptions& options_;
  int count_ = 0;
};

template <typename F>
IRModule each_caller(IRModule& module, const F& rewrite_one) {
  const std::vector<IRModule::Entry> entries = module.functions();
  for (const auto& [name, base] : entries) {
    const auto function = cast<Function>(base);
    if (function && backend_of(*function).empty() && !function->attrs.contains("Pattern"))
      module.set(name, rewrite_one(name, function));
  }
  return eliminate_dead_code(std::move(module));
}

}  // namespace

static IRModule with_origins(IRModule module) {
  const std::vector<IRModule::Entry> entries = module.functions();
  for (const auto& [name, base] : entries) {
    const auto function = cast<Function>(base);
    if (!function || !function->attrs.contains("Composite") ||
        function->attrs.contains("PartitionedFromPattern"))
      continue;
    module.set(name, with_attrs(*function, {{"PartitionedFromPattern", operators_of(*function)}}));
  }
  return module;
}

IRModule merge_composite(IRModule module, const std::vector<FusionPattern>& patterns) {
  return with_origins(fuse_ops_by_pattern(std::move(module), patterns));
}

IRModule merge_composite(IRModule module) {
  return with_origins(fuse_ops_by_pattern(std::move(module)));
}

IRModule annotate_target(IRModule module, const std::vector<std::string>& targets) {
  Annotator annotator(module, targets);
  return each_caller(module, [&](const std::string&, const Ref<Function>& function) {
    return annotator.run(function);
  });
}

IRModule merge_compiler_regions(IRModule module) {
  RegionMerger merger(module);
  return each_caller(module, [&](const std::string&, const Ref<Function>& function) {
    return rewrite_blocks(function, [&](const BindingBlock& block, const auto& escaping) {
      return merger.run(block, escaping);
    });
  });
}

IRModule partition_graph(IRModule module, const PartitionOptions& options) {
  Namer namer(module, options);
  return each_caller(module, [&](const std::string& name, const Ref<Function>& function) {
    return namer.run(name, function);
  });
}

IRModule outline_compiler_functions(IRModule module, const std::string& compiler) {
  const auto is_taken = [&](const FunctionValue& value) {
    const auto target = value.function->attrs.get<std::string>("Compiler");
    return target && (compiler.empty() || *target == compiler) &&
           value.function->attrs.get<std::string>("global_symbol");
  };
  const std::vector<IRModule::Entry> entries = module.functions();
  for (const auto& [name, base] : entries) {
    const auto function = cast<Function>(base);
    bool any = false;
    if (function)
      walk<FunctionValue>(function->body,
                          [&](const FunctionValue& value) { any |= is_taken(value); });
    if (!any) continue;
    module.set(
        name,
        rebuild(
            module, function,
            [&](BlockBuilder&, const Binding&, const Value& value) -> std::optional<Value> {
              const auto* local = value.as<FunctionValue>();
              if (!local || !is_taken(*local)) return std::nullopt;
              const std::string symbol = *local->function->attrs.get<std::string>("global_symbol");
              const Ref<Function> shared =
                  with(*local->function, [&](Function& copy) { copy.is_private = true; });
              const BaseFunc known = module.find(symbol);
              if (known && !structural_equal(known, BaseFunc(shared)))
                throw CompileError(kRedefined, local->function->origin,
                                   "two functions have global_symbol `{}`, and they differ", symbol)
                    .note(known->origin, "the other one is here");
              if (!known) module.set(symbol, shared);
              return Value(make<FuncRef>(symbol));
            }));
  }
  return module;
}

}  // namespace tenon::graph
