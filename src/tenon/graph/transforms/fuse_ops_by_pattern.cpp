// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "tenon/graph/backend.h"
#include "tenon/graph/dimensions.h"
#include "tenon/graph/partition_passes.h"
#include "tenon/graph/patterns/near_miss.h"
#include "tenon/graph/transforms.h"
#include "tenon/graph/transforms/partition.h"
#include "tenon/support/remarks.h"

namespace tenon::graph {

namespace {

// The module's graph functions with attr `Pattern`, which go; the composites are what they name.
std::vector<FusionPattern> take_patterns(IRModule& module) {
  IRModule patterns;
  const std::vector<IRModule::Entry> entries = module.functions();
  for (const auto& [name, base] : entries) {
    const auto function = cast<Function>(base);
    if (!function || !function->attrs.get<std::string>("Pattern")) continue;
    patterns.set(name, function);
    module.erase(name);
  }
  return patterns.size() == 0 ? std::vector<FusionPattern>() : read_patterns(patterns);
}

bool is_pure_call(const IRModule& module, const Binding& binding) {
  const auto* call = binding.value.as<Call>();
  if (binding.match || !call) return !binding.match && is_leaf(binding.value);
  if (call->op) return call->op->pure;
  const auto* ref = call->callee.as<FuncRef>();
  const auto function = ref ? module.find<Function>(ref->name) : nullptr;
  return function && function->pure;
}

/// A match that is to become a composite.
struct Chosen {
  size_t pattern;
  std::vector<size_t> members;  // positions in the block
  Composite composite;
  std::vector<Ref<Var>> outputs;
};

struct Tally {
  int found = 0;
  std::string refused;  // the first match that was refused, and why
};

/// The matches of one function.
class Matches {
 public:
  Matches(IRModule& module, const Ref<Function>& function,
          const std::vector<FusionPattern>& patterns, const FuseOptions& options,
          std::vector<Tally>& tallies)
      : module_(module),
        function_(function),
        patterns_(patterns),
        options_(options),
        tallies_(tallies),
        matcher_(&module, *function) {}

  /// Those of one block, by the position of their last member.
  std::map<size_t, Chosen> run(const BindingBlock& block) {
    BlockPartition partition(module_, block);
    std::vector<size_t> owner(block.bindings.size(), kFree);
    std::vector<std::optional<Chosen>> chosen;
    for (const size_t p : order_of_patterns(patterns_)) {
      const FusionPattern& pattern = patterns_[p];
      if (!pattern.pattern) continue;  // over TensorIR: SplitCallTIRByPattern
      std::vector<Ref<Binding>> roots = roots_of(p);
      for (auto root = roots.rbegin(); root != roots.rend(); ++root) {
        if (!partition.index_of((*root)->var.get())) continue;  // of another block
        auto match = matcher_.match(pattern.pattern, *root);
        if (!match) continue;
        auto found = consider(p, *match, block, partition);
        if (!found) continue;
        // What it overlaps must lie in it, and be no part that goes first.
        std::set<size_t> overlapped;
        for (const size_t member : found->members)
          if (owner[member] != kFree) overlapped.insert(owner[member]);
        const bool subsumes = std::all_of(overlapped.begin(), overlapped.end(), [&](size_t other) {
          const Chosen& part = *chosen[other];
          return part.members.size() < found->members.size() &&
                 patterns_[part.pattern].priority <= pattern.priority &&
                 std::includes(found->members.begin(), found->members.end(), part.members.begin(),
                               part.members.end());
        });
        if (!subsumes) {
          const std::string& other = patterns_[chosen[*overlapped.begin()]->pattern].name;
          refuse(p, *match, "overlap", "a match of `" + other + "` has an operator of it");
          continue;
        }
        if (!partition.merge(found->members)) {
          refuse(p, *match, "cycle", "it would depend on its own result");
          continue;
        }
        for (const size_t other : overlapped) {
          --tallies_[chosen[other]->pattern].found;
          chosen[other].reset();
        }
        for (const size_t member : found->members) owner[member] = chosen.size();
        ++tallies_[p].found;
        chosen.push_back(std::move(found));
      }
    }
    std::map<size_t, Chosen> out;
    for (std::optional<Chosen>& one : chosen)
      if (one) {
        const size_t last = one->members.back();
        out.emplace(last, std::move(*one));
      }
    return out;
  }

 private:
  static constexpr size_t kFree = static_cast<size_t>(-1);

  const std::vector<Ref<Binding>>& roots_of(size_t p) {
    const auto [found, is_new] = roots_.emplace(p, std::vector<Ref<Binding>>());
    if (is_new) found->second = matcher_.roots(patterns_[p].pattern);
    return found->second;
  }

  void refuse(size_t p, const Match& match, std::string code, std::string words) {
    const Binding& root = *match.bindings.back();
    const Origin& origin = root.origin ? root.origin : root.value->origin;
    if (tallies_[p].refused.empty())
      tallies_[p].refused = fmt::format(
          "a match at `{}` is refused ({}): {}",
          origin && origin->kind != OriginInfo::Kind::kScript ? origin.name() : root.var->name,
          code, words);
    record({"FuseOpsByPattern",
            root.var->name,
            "refused",
            std::move(code),
            {},
            "`" + patterns_[p].name + "`: " + words,
            origin});
  }

  std::optional<Chosen> consider(size_t p, const Match& match, const BindingBlock& block,
                                 const BlockPartition& partition) {
    const FusionPattern& pattern = patterns_[p];
    Chosen out;
    out.pattern = p;
    for (const Ref<Binding>& binding : match.bindings) {
      const auto index = partition.index_of(binding->var.get());
      if (!index) {
        refuse(p, match, "blocks", "it spans several blocks");
        return std::nullopt;
      }
      if (!is_pure_call(module_, *block.bindings[*index])) {
        refuse(p, match, "effects", "`" + binding->var->name + "` has effects");
        return std::nullopt;
      }
      out.members.push_back(*index);
    }
    if (out.members.empty()) return std::nullopt;
    std::sort(out.members.begin(), out.members.end());
    out.outputs = match.outputs;
    if (!match.escaping.empty()) {
      if (!options_.extra_outputs) {
        refuse(p, match, "used-outside", "an inner value is used elsewhere too");
        return std::nullopt;
      }
      out.outputs.insert(out.outputs.end(), match.escaping.begin(), match.escaping.end());
    }
    out.composite = make_composite(
        pattern, match, {.bind_constants = options_.bind_constants, .outputs = out.outputs});
    if (!defines_dimensions(*out.composite.function)) {
      refuse(p, match, "symbolic", kOpenDimension);
      return std::nullopt;
    }
    const std::map<std::string, Value> annotated = annotated_values(pattern, match);
    const PatternCheck check{module_, *function_, match, out.composite.function, annotated};
    if (pattern.check) {
      const Verdict verdict = pattern.check(check);
      if (!verdict.accepted) {
        refuse(p, match, verdict.code, verdict.words);
        return std::nullopt;
      }
    }
    if (pattern.attrs) {
      out.composite.function = with(out.composite.function, [&](Function& copy) {
        for (const auto& [name, value] : pattern.attrs(check))
          if (name != "Composite") copy.attrs.set(name, value);
      });
    }
    return out;
  }

  IRModule& module_;
  const Ref<Function>& function_;
  const std::vector<FusionPattern>& patterns_;
  const FuseOptions& options_;
  std::vector<Tally>& tallies_;
  Matcher matcher_;
  std::unordered_map<size_t, std::vector<Ref<Binding>>> roots_;
};

/// Calls of composites in the places of what matched.
class Fusion {
 public:
  Fusion(IRModule& module, const std::vector<FusionPattern>& patterns, const FuseOptions& options)
      : module_(module), patterns_(patterns), options_(options) {}

  Ref<BindingBlock> rewrite(const BindingBlock& block, const std::map<size_t, Chosen>& chosen) {
    // Once more, now that it is known what stays: groups that were replaced are gone.
    BlockPartition partition(module_, block);
    for (const auto& [last, one] : chosen) {
      const bool merged = partition.merge(one.members);
      check(merged, "matches that were convex one after another are not together");
    }
    std::vector<Ref<Binding>> bindings;
    for (const std::vector<size_t>& group : partition.groups()) {
      const auto one = chosen.find(group.back());
      if (one == chosen.end())
        bindings.push_back(block.bindings[group[0]]);
      else
        call(one->second, block, bindings);
    }
    return make<BindingBlock>(std::move(bindings), block.is_dataflow, block.origin);
  }

 private:
  void call(const Chosen& chosen, const BindingBlock& block, std::vector<Ref<Binding>>& out) {
    const Origin& origin = chosen.composite.function->origin;
    std::vector<Value> args;
    for (const Value& argument : chosen.composite.arguments) {
      if (!argument.as<Call>()) {
        args.push_back(argument);
        continue;
      }
      const auto var = make<Var>("packed", type_of(argument), block.is_dataflow);
      out.push_back(
          make<Binding>(var, argument, Type(), block.bindings[chosen.members.back()]->origin));
      args.push_back(var);
    }
    const std::string name = name_of(chosen);
    Value value =
        make<Call>(make<FuncRef>(name), std::move(args), Attrs(), std::vector<Type>{}, origin);
    bind_outputs(chosen.outputs, value, type_of_outputs(chosen.outputs), block.is_dataflow, origin,
                 out);
  }

  // Equal composites are one function.
  const std::string& name_of(const Chosen& chosen) {
    const std::string& composite = patterns_[chosen.pattern].name;
    std::string& name = known_[chosen.composite.function];
    if (!name.empty()) return name;
    if (!options_.annotate_codegen)
      return name = module_.add_unique(identifier(composite), chosen.composite.function);
    // A region of this composite alone, which holds it.
    const Ref<Function>& inner = chosen.composite.function;
    const std::string called = module_.add_unique(identifier(composite), inner);
    std::vector<Value> args(inner->params.begin(), inner->params.end());
    const auto output =
        make<Var>("output", inner->result ? inner->result : type_of(inner->body->body));
    const auto call = make<Call>(make<FuncRef>(called), std::move(args), Attrs(),
                                 std::vector<Type>{}, inner->origin);
    const auto block = make<BindingBlock>(
        std::vector<Ref<Binding>>{make<Binding>(output, call, Type(), inner->origin)}, false);
    const auto body = make<SeqExpr>(std::vector<Ref<BindingBlock>>{block}, output);
    name = add_region(module_, "fused_" + identifier(composite),
                      composite.substr(0, composite.find('.')), inner->with_body(body));
    return name;
  }

  IRModule& module_;
  const std::vector<FusionPattern>& patterns_;
  const FuseOptions& options_;
  std::unordered_map<NodePtr, std::string, StructuralHash, StructuralEqual> known_;
};

// A pattern of the module that is nowhere is most likely not what was meant.
void report(const IRModule& before, const std::vector<FusionPattern>& patterns,
            const std::vector<Tally>& tallies) {
  for (size_t p = 0; p < patterns.size(); ++p) {
    if (!patterns[p].pattern) continue;  // one over TensorIR
    std::string why = tallies[p].refused;
    if (!tallies[p].found && why.empty())
      if (const auto miss = nearest_miss(before, patterns[p].pattern)) why = miss->text();
    record({"FuseOpsByPattern",
            patterns[p].name,
            tallies[p].found ? "matched" : "unmatched",
            "",
            {{"times", static_cast<double>(tallies[p].found)}},
            tallies[p].found ? "" : why,
            patterns[p].origin});
  }
}

}  // namespace

static IRModule fuse(IRModule module, const std::vector<FusionPattern>& patterns,
                     const FuseOptions& options, std::vector<Tally>& tallies) {
  Fusion fusion(module, patterns, options);
  const std::vector<IRModule::Entry> entries = module.functions();
  for (const auto& [name, base] : entries) {
    const auto function = cast<Function>(base);
    if (!function || function->attrs.flag("Primitive") || !backend_of(*function).empty()) continue;
    Matches matches(module, function, patterns, options, tallies);
    module.set(name, rewrite_blocks(function, [&](const BindingBlock& block, const auto&) {
                 const auto chosen = matches.run(block);
                 return chosen.empty() ? Ref<BindingBlock>() : fusion.rewrite(block, chosen);
               }));
  }
  return eliminate_dead_code(std::move(module));
}

IRModule fuse_ops_by_pattern(IRModule module, const std::vector<FusionPattern>& patterns,
                             const FuseOptions& options) {
  std::vector<Tally> tallies(patterns.size());
  const IRModule before = options.tells_unmatched ? module : IRModule();
  module = fuse(std::move(module), patterns, options, tallies);
  if (options.tells_unmatched) report(before, patterns, tallies);
  return module;
}

IRModule fuse_ops_by_pattern(IRModule module, const FuseOptions& options) {
  const std::vector<FusionPattern> patterns = take_patterns(module);
  std::vector<Tally> tallies(patterns.size());
  const IRModule before = module;
  module = fuse(std::move(module), patterns, options, tallies);
  report(before, patterns, tallies);
  return module;
}

IRModule fuse_ops_by_pattern(IRModule module) {
  return fuse_ops_by_pattern(std::move(module), FuseOptions());
}

}  // namespace tenon::graph
