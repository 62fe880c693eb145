// SPDX-License-Identifier: Apache-2.0
#include "tenon/tune/placement.h"

#include <algorithm>
#include <map>
#include <set>

#include "tenon/graph/arithmetic.h"
#include "tenon/graph/external_modules.h"
#include "tenon/graph/kernels.h"
#include "tenon/graph/op.h"
#include "tenon/graph/patterns/candidate_rank.h"
#include "tenon/graph/transforms.h"
#include "tenon/graph/transforms/kernel_operators.h"
#include "tenon/graph/transforms/partition.h"
#include "tenon/graph/transforms/rebuild.h"
#include "tenon/support/nearest.h"
#include "tenon/support/remarks.h"
#include "tenon/tune/estimate.h"
#include "tenon/tune/kernel_placement.h"
#include "tenon/tune/part.h"
#include "tenon/tune/placement_search.h"

namespace tenon::tune {

namespace {

using graph::Backend;
using graph::Binding;
using graph::Call;
using graph::Function;
using graph::kNoProvider;
using graph::kUserPlacement;
using graph::UserPlacement;

constexpr const char* kPass = "AnnotatePlacement";
constexpr const char* kPlacement = "placement";  // of a function: by variable

std::vector<std::string> backend_names() {
  std::vector<std::string> names;
  for (const auto& backend : graph::all_backends()) names.push_back(backend->name);
  return names;
}

std::string list_of(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list.empty() ? "none" : list;
}

/// An operator of a function, and what is decided about it.
struct Operator {
  Ref<Binding> binding;
  std::string subject;  // the model's node, or the variable
  double flop = 0;
  std::string wanted;      // by user placement: a pattern, a back end, "none"; empty: nothing
  std::string written_as;  // how the user wrote it, for messages
  const Found* placed = nullptr;
  bool is_later = false;  // wanted of a back end that may find it among kernels
  struct Refusal {
    const Found* found;
    std::string code, words;
  };
  std::vector<Refusal> refusals;
};

Origin origin_of(const Binding& binding) {
  return binding.origin ? binding.origin : binding.value->origin;
}

// What a call of a foreign function names; empty where it is none.
std::string foreign_symbol(const IRModule& module, const Binding& binding) {
  const auto* call = binding.value.as<Call>();
  if (!call || call->args.empty()) return "";
  bool is_foreign = false;
  for (const char* form :
       {"call_dps_packed", "call_packed", "call_pure_packed", "call_inplace_packed"})
    is_foreign |= call->is(form);
  if (!is_foreign) return "";
  if (const auto* symbol = call->args[0].as<graph::ExternRef>()) return symbol->symbol;
  const auto* ref = call->args[0].as<graph::FuncRef>();
  const auto declared = ref ? module.find<tir::ExternFunction>(ref->name) : nullptr;
  return declared ? declared->symbol : "";
}

bool is_operator(const Binding& binding) {
  const auto* call = binding.value.as<Call>();
  if (!call || !call->op) return false;
  for (const char* form :
       {"call_tir", "call_dps_packed", "call_packed", "call_pure_packed", "call_inplace_packed"})
    if (call->is(form)) return false;
  return true;
}

// "kernels", or "kernels.f" for one of them.
bool is_of_kernels(const std::string& wanted) {
  return !graph::find_backend(graph::kKernels) && graph::backend_part(wanted) == graph::kKernels;
}
std::string kernel_of(const std::string& wanted) {
  const size_t dot = wanted.find('.');
  return dot == std::string::npos ? "" : wanted.substr(dot + 1);
}

// Whether anybody else than own code computes anything of it.
bool has_providers(const IRModule& module) {
  for (const auto& [name, base] : module.functions()) {
    if (base.as<tir::ExternFunction>()) return true;
    if (base.as<tir::PrimFunc>() && base->attrs.contains("op")) return true;
    const auto function = cast<Function>(base);
    if (!function) continue;
    if (function->attrs.contains("Composite") || function->attrs.contains("Codegen") ||
        function->attrs.contains("Compiler"))
      return true;
    for (const Ref<graph::BindingBlock>& block : function->body->blocks)
      for (const Ref<Binding>& binding : block->bindings)
        if (!foreign_symbol(module, *binding).empty()) return true;
  }
  return false;
}

// The highest number of an operator in the module.
uint32_t highest_number(const IRModule& module) {
  uint32_t highest = 0;
  for (const auto& [name, function] : module.functions())
    walk_if(function, [&](const NodePtr& node) {
      graph::each_part(node.get()->origin,
                       [&](const Origin& part) { highest = std::max(highest, part->number); });
      return true;
    });
  return highest;
}

// What is made of an operator keeps its origin, whose number others of its node do not have.
Ref<Function> with_own_numbers(const Ref<Function>& function, uint32_t& highest) {
  return rewrite(function, [&](const NodePtr& node) -> std::optional<NodePtr> {
    const auto* binding = node.as<Binding>();
    const Origin origin = binding && is_operator(*binding) ? origin_of(*binding) : Origin();
    if (!origin || origin->kind == OriginInfo::Kind::kMerged) return std::nullopt;
    const Origin own = origin.numbered(++highest);
    const Call& call = *binding->value.as<Call>();
    return make<Binding>(binding->var,
                         make<Call>(call.op, call.args, call.attrs, call.type_args, own),
                         binding->match, own);
  });
}

bool takes_part(const Function& function) {
  for (const char* attr : {"Composite", "Codegen", "Compiler", "Primitive", "Pattern"})
    if (function.attrs.contains(attr)) return false;
  return true;
}

// The model's nodes that an origin names.
void each_node(const Origin& origin, const std::function<void(const std::string&)>& visit) {
  if (!origin) return;
  if (origin->kind == OriginInfo::Kind::kModel) visit(origin->node_name);
  for (const Origin& part : origin->parts) each_node(part, visit);
}

/// What became of a pattern of the user's.
struct Tally {
  int64_t accepted = 0, refused = 0;
  std::string why;  // the first refusal; where nothing matched, what came nearest
};
using Tallies = std::map<const graph::FusionPattern*, Tally>;

/// Decides about one function.
class FunctionPlacement {
 public:
  FunctionPlacement(const IRModule& module, const Ref<Function>& function,
                    const std::vector<std::shared_ptr<const Backend>>& backends,
                    const UserPlacement::Providers& measured, Tallies& tallies)
      : module_(module),
        function_(function),
        backends_(backends),
        measured_(measured),
        tallies_(tallies),
        requested_backends_(backends.size()),
        kernels_(module),
        search_(module, function) {
    walk_if(function->body, [&](const NodePtr& node) {
      if (const auto binding = cast<Binding>(node); binding && is_operator(*binding))
        add_operator(binding);
      if (const auto* binding = node.as<Binding>())
        if (const std::string symbol = foreign_symbol(module, *binding); !symbol.empty())
          foreign_.emplace_back(ref_to(binding), symbol);
      return !node.as<graph::FunctionValue>();
    });
  }

  /// Notes user placement; true where a model's node is one of this function's.
  bool want_node(const std::string& node, const std::string& wanted) {
    bool there = false;
    for (Operator& op : operators_) {
      bool is_meant = op.binding->var->name == node;
      each_node(origin_of(*op.binding), [&](const std::string& name) { is_meant |= name == node; });
      if (!is_meant) continue;
      op.wanted = wanted;
      op.written_as = "--place " + node + "=" + wanted;
      there = true;
    }
    return there;
  }
  void want_variables(const UserPlacement::Providers& variables) {
    for (const auto& [name, wanted] : variables) {
      check_backend(wanted, "placement of `" + name + "`");
      const auto op = std::find_if(operators_.begin(), operators_.end(), [&, &key = name](auto& o) {
        return o.binding->var->name == key;
      });
      if (op == operators_.end()) {
        std::vector<std::string> names;
        for (const Operator& known : operators_) names.push_back(known.binding->var->name);
        throw CompileError(kBadPlacement, function_->origin,
                           "attribute `placement` names `{}`, which no operator is bound to{}",
                           name, did_you_mean(name, names));
      }
      op->wanted = wanted;
      op->written_as = "placement of `" + name + "`";
    }
  }
  /// \throws CompileError (kBadPlacement) where there is no such provider.
  void check_known(const std::string& wanted, const std::string& where) {
    if (!is_of_kernels(wanted)) return check_backend(wanted, where);
    const std::string name = kernel_of(wanted);
    if (name.empty() ? !kernels_.empty() : kernels_.find(name) != nullptr) return;
    std::vector<std::string> names;
    for (const graph::OperatorKernel& kernel : kernels_.kernels()) names.push_back(kernel.name);
    if (names.empty())
      throw CompileError(kBadPlacement, function_->origin,
                         "{}: the module has no kernel for an operator; expected --kernels or "
                         "--kernel",
                         where);
    throw CompileError(kBadPlacement, function_->origin, "{}: no kernel `{}`{}; there are: {}",
                       where, name, did_you_mean(name, names), list_of(names));
  }
  /// The same of back ends alone.
  void check_backend(const std::string& wanted, const std::string& where) {
    if (wanted == kNoProvider) return;
    const std::string name = graph::backend_part(wanted);
    const auto backend = graph::find_backend(name);
    if (!backend)
      throw CompileError(kBadPlacement, function_->origin, "{}: no back end `{}`; there are: {}",
                         where, name, list_of(backend_names()));
    if (std::find(backends_.begin(), backends_.end(), backend) == backends_.end())
      backends_.push_back(backend);
  }

  /// User placement that patterns over TensorIR are to heed, which come later.
  void add_for_kernels(UserPlacement::Providers& to) const {
    for (const Operator& op : operators_)
      if (op.is_later || op.wanted == kNoProvider)
        graph::each_part(origin_of(*op.binding),
                         [&](const Origin& part) { to[graph::placement_name(part)] = op.wanted; });
  }

  /// The annotations.
  AttrValue::Map run(const Target& target) {
    find(target);
    choose();
    leave_to_kernels();
    check_wanted();
    AttrValue::Map placement;
    for (const Operator& op : operators_) {
      if (op.wanted == kNoProvider) placement[op.binding->var->name] = kNoProvider;
      if (op.placed) placement[op.placed->root()->name] = op.placed->name();
    }
    report();
    return placement;
  }

 private:
  /// A match that may be taken.
  struct Candidate {
    const Found* found;
    graph::CandidateRank rank = {};
  };

  void add_operator(const Ref<Binding>& binding) {
    Operator op;
    op.binding = binding;
    const Origin origin = origin_of(*binding);
    op.subject =
        origin && origin->kind != OriginInfo::Kind::kScript ? origin.name() : binding->var->name;
    op.flop = 2 * graph::macs_of(*binding->value.as<Call>(), binding->var->type,
                                 graph::SymbolicDims::kAsOne)
                      .value_or(0);
    index_[binding->var.get()] = operators_.size();
    operators_.push_back(std::move(op));
  }

  std::vector<Operator*> operators_of(const Found& found) {
    std::vector<Operator*> out;
    for (const Ref<Binding>& binding : found.match.bindings) {
      const auto it = index_.find(binding->var.get());
      if (it != index_.end()) out.push_back(&operators_[it->second]);
    }
    return out;
  }

  // Whether user placement allows a match to take an operator.
  static bool allows(const Operator& op, const Found& found) {
    return op.wanted.empty() || op.wanted == found.backend->name || op.wanted == found.name();
  }

  void find(const Target& target) {
    for (const auto& backend : backends_)
      for (Found& found : search_.all(*backend)) found_.push_back(std::move(found));
    tally();
    const MeasuredMatches measured(found_, measured_);
    for (size_t i = 0; i < found_.size(); ++i) {
      const Found& found = found_[i];
      const std::vector<Operator*> covered = operators_of(found);
      const auto refuse = [&](const std::string& code, const std::string& words) {
        for (Operator* op : covered) op->refusals.push_back({&found, code, words});
      };
      if (!found.verdict.accepted) {
        refuse(found.verdict.code, found.verdict.words);
        continue;
      }
      if (!std::all_of(covered.begin(), covered.end(),
                       [&](const Operator* op) { return allows(*op, found); })) {
        refuse(kUserPlacement, "it is written to run elsewhere");
        continue;
      }
      graph::CandidateRank rank;
      rank.backend_priority = found.backend->priority;
      rank.pattern_priority = found.priority;
      rank.backend = static_cast<uint64_t>(
          std::find_if(backends_.begin(), backends_.end(),
                       [&](const auto& one) { return one.get() == found.backend; }) -
          backends_.begin());
      rank.size = static_cast<int64_t>(covered.size());
      for (const Operator* op : covered) {
        rank.work += op->flop;
        rank.is_user_placed |= !op->wanted.empty();
      }
      // What was not asked for serves where the user says so, and nowhere else.
      if (rank.backend >= requested_backends_ && !rank.is_user_placed) continue;
      const double own = estimated_seconds(*found.composite.function, target);
      rank.seconds = found.declared.value_or(own);
      if (!rank.is_user_placed) {
        const std::string slower = measured.refusal(i);
        const std::string dearer = measured.is_faster(i) ? "" : cost_refusal(rank.seconds, own);
        if (!slower.empty() || !dearer.empty()) {
          refuse(slower.empty() ? "cost" : "measured", slower.empty() ? dearer : slower);
          continue;
        }
      }
      rank.number = i;
      candidates_.push_back({&found, rank});
    }
  }

  // A pattern of the user's that matches nothing, or whose matches are all refused, is told.
  void tally() {
    for (const Found& found : found_) {
      if (!found.pattern->is_users) continue;
      Tally& tally = tallies_[found.pattern];
      if (found.verdict.accepted) {
        ++tally.accepted;
        continue;
      }
      if (tally.refused++ == 0) tally.why = found.verdict.words;
    }
    for (const auto& backend : backends_)
      for (const graph::FusionPattern& pattern : backend->patterns) {
        if (!pattern.is_users || !pattern.pattern) continue;
        Tally& tally = tallies_[&pattern];
        if (tally.accepted == 0 && tally.refused == 0 && tally.why.empty())
          tally.why = search_.nearest(pattern);
      }
  }

  void choose() {
    std::sort(candidates_.begin(), candidates_.end(),
              [](const Candidate& a, const Candidate& b) { return a.rank < b.rank; });
    std::set<const Node*> taken;
    std::unordered_map<const graph::BindingBlock*, graph::BlockPartition> partitions;
    for (const Candidate& candidate : candidates_) {
      const Found& found = *candidate.found;
      const std::vector<Operator*> covered = operators_of(found);
      const bool is_free = std::none_of(
          found.match.bindings.begin(), found.match.bindings.end(),
          [&](const Ref<Binding>& binding) { return taken.count(binding->var.get()) != 0; });
      if (!is_free) {
        for (Operator* op : covered)
          op->refusals.push_back({&found, "overlap", "another match takes an operator of it"});
        continue;
      }
      // Matches may be together what none of them is alone: needed by what they need.
      const graph::BindingBlock& block = search_.block_of(found);
      graph::BlockPartition& partition =
          partitions.try_emplace(&block, module_, block).first->second;
      std::vector<size_t> members;
      for (const Ref<Binding>& binding : found.match.bindings)
        members.push_back(*partition.index_of(binding->var.get()));
      if (!partition.merge(members)) {
        for (Operator* op : covered)
          op->refusals.push_back({&found, "cycle", "it would depend on its own result"});
        continue;
      }
      for (const Ref<Binding>& binding : found.match.bindings) taken.insert(binding->var.get());
      for (Operator* op : covered) op->placed = &found;
    }
  }

  std::string reasons(const Operator& op) const {
    std::string text;
    std::set<std::string> seen;
    for (const Operator::Refusal& refusal : op.refusals) {
      std::string reason = refusal.found->name() + ": " + refusal.code;
      if (!refusal.words.empty()) reason += ": " + refusal.words;
      if (seen.insert(reason).second) text += (text.empty() ? "" : "; ") + reason;
    }
    if (op.placed || !text.empty()) return text;
    for (const auto& backend : backends_) {
      const std::string misses = search_.near_misses(*backend, op.binding);
      if (!misses.empty()) text += (text.empty() ? "" : "; ") + misses;
    }
    return text;
  }

  std::string refusal_of_kernels(const Operator& op) const {
    const auto& call = *op.binding->value.as<Call>();
    const graph::OperatorKernel* kernel = kernels_.find(kernel_of(op.wanted));
    if (!kernel) return kernels_.nearest_refusal(module_, call);
    const auto& names = kernel->operators;
    if (std::find(names.begin(), names.end(), call.op->name) != names.end())
      return kernels_.nearest_refusal(module_, call);
    return fmt::format("`{}` is a kernel for `{}`, and this is `{}`", kernel->name, names.front(),
                       call.op->name);
  }

  static bool is_node(const Operator& op) { return op.written_as.starts_with("--place"); }
  bool has_placed(const Operator& op) const {
    return op.placed ||
           (is_node(op) &&
            std::any_of(operators_.begin(), operators_.end(), [&](const Operator& other) {
              return other.written_as == op.written_as && other.placed;
            }));
  }

  void leave_to_kernels() {
    for (Operator& op : operators_)
      op.is_later = !op.wanted.empty() && op.wanted != kNoProvider && !has_placed(op) &&
                    origin_of(*op.binding) && has_kernel_pattern(op.wanted);
  }

  // What the user placed must be there. A node may have become several operators: one of them is
  // enough.
  void check_wanted() const {
    const auto fail = [&](const Operator& op) {
      const std::string why = is_of_kernels(op.wanted) ? refusal_of_kernels(op) : reasons(op);
      throw CompileError(kBadPlacement, origin_of(*op.binding), "{}: {}", op.written_as,
                         why.empty() ? "no pattern of `" + op.wanted + "` matches" : why);
    };
    for (const Operator& op : operators_) {
      if (op.wanted.empty() || op.wanted == kNoProvider || op.is_later) continue;
      if (!has_placed(op)) fail(op);
    }
  }

  void report() const {
    for (const auto& [binding, symbol] : foreign_) {
      const Origin origin = binding->value->origin ? binding->value->origin : binding->origin;
      const bool is_node = origin && origin->kind != OriginInfo::Kind::kScript;
      record({kPass,
              is_node ? origin.name() : binding->var->name,
              "placed",
              std::string(kExtern) + "." + symbol,
              {{"flop", 0.0}},
              "",
              origin,
              Decision{Decision::Step::kPlacement, Decision::Kind::kTaken, kExtern, symbol}});
    }
    for (const Operator& op : operators_) {
      Decision decision = decision_of(op);
      const bool is_taken = decision.kind == Decision::Kind::kTaken;
      Remark remark{kPass,
                    op.subject,
                    is_taken                                    ? "placed"
                    : decision.kind == Decision::Kind::kRefused ? "refused"
                                                                : "kept",
                    is_taken ? decision.candidate : decision.code,
                    {{"flop", op.flop}},
                    reasons(op),
                    origin_of(*op.binding)};
      if (op.placed && op.placed->declared)
        remark.numbers.emplace_back("seconds", *op.placed->declared);
      remark.decision = std::move(decision);
      record(std::move(remark));
    }
  }

  static Decision decision_of(const Operator& op) {
    Decision decision{Decision::Step::kPlacement, Decision::Kind::kKept, "", "", kNoPattern};
    decision.flop = op.flop;
    if (op.placed) {
      decision.kind = Decision::Kind::kTaken;
      decision.provider = op.placed->backend->name;
      decision.candidate = op.placed->name();
      decision.code.clear();
    } else if (op.wanted == kNoProvider) {
      decision.code = kUserPlacement;
    } else if (op.is_later) {
      decision.code = "kernel-pattern";
    } else if (!op.refusals.empty()) {
      const Operator::Refusal& first = op.refusals.front();
      decision.kind = Decision::Kind::kRefused;
      decision.provider = first.found->backend->name;
      decision.candidate = first.found->name();
      decision.code = first.code;
    }
    return decision;
  }

  const IRModule& module_;
  Ref<Function> function_;
  std::vector<std::shared_ptr<const Backend>>
      backends_;  // those asked for, then those of user placement
  const UserPlacement::Providers& measured_;
  Tallies& tallies_;
  size_t requested_backends_;
  graph::KernelTable kernels_;
  PlacementSearch search_;
  std::vector<Operator> operators_;
  std::vector<std::pair<Ref<Binding>, std::string>> foreign_;  // and the symbol
  std::unordered_map<const Node*, size_t> index_;              // by variable
  std::vector<Found> found_;                                   // does not move any more once filled
  std::vector<Candidate> candidates_;
};

// Annotations name variables: no two of a function may have one name.
bool has_unique_names(const Function& function) {
  std::set<std::string> names;
  bool unique = true;
  for (const Ref<graph::Var>& param : function.params) unique &= names.insert(param->name).second;
  walk<Binding>(function.body,
                [&](const Binding& binding) { unique &= names.insert(binding.var->name).second; });
  return unique;
}

std::vector<std::shared_ptr<const Backend>> backends_of(const std::vector<std::string>& libs) {
  std::vector<std::shared_ptr<const Backend>> backends;
  for (const std::string& name : libs) {
    const auto backend = graph::find_backend(name);
    if (!backend)
      throw CompileError(kBadOption, {}, "no back end `{}`; there are: {}", name,
                         list_of(backend_names()));
    if (std::find(backends.begin(), backends.end(), backend) == backends.end())
      backends.push_back(backend);
  }
  return backends;
}

// Who was given a node before placement: a kernel of the user's, or a composite of the module;
// empty where nobody was.
std::string taker_of(const IRModule& module, const std::string& node) {
  std::string taker;
  for (const auto& [name, function] : module.functions())
    walk<Binding>(function, [&](const Binding& binding) {
      const auto* call = binding.value.as<Call>();
      const bool is_kernel = call && call->is("call_tir");
      if (!call || (call->op && !is_kernel)) return;
      const graph::Value callee = is_kernel ? call->args.at(0) : call->callee;
      const auto* ref = callee.as<graph::FuncRef>();
      bool is_meant = binding.var->name == node;
      each_node(origin_of(binding), [&](const std::string& other) { is_meant |= other == node; });
      if (is_meant && ref) taker = ref->name;
    });
  return taker;
}

void report_patterns(const std::vector<std::shared_ptr<const Backend>>& backends,
                     const Tallies& tallies) {
  for (const auto& backend : backends)
    for (const graph::FusionPattern& pattern : backend->patterns) {
      const auto found = tallies.find(&pattern);
      if (found == tallies.end()) continue;
      const Tally& tally = found->second;
      const bool is_matched = tally.accepted > 0;
      record({kPass,
              pattern.name,
              is_matched ? "matched" : "unmatched",
              is_matched || tally.refused == 0 ? "" : "refused",
              {{"times", static_cast<double>(tally.accepted)},
               {"refused", static_cast<double>(tally.refused)}},
              is_matched ? "" : tally.why,
              pattern.origin});
    }
}

}  // namespace

std::vector<std::string> libs_of(const IRModule& module) {
  const UserPlacement user = UserPlacement::of(module);
  std::vector<std::string> names;
  // Of a back end that has made its code for the module already, the code is all that is needed.
  for (const std::string& name : user.backends)
    if (graph::find_backend(name) || !graph::has_code_of(module, name)) names.push_back(name);
  backends_of(names);
  // Libraries that are called by name: of a module that was read again they may not be known, and
  // have their composites already.
  for (const std::string& name : user.libraries)
    if (graph::find_backend(name) && std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  return names;
}

IRModule annotate_placement(IRModule module, const UserPlacement& user) {
  const std::vector<std::shared_ptr<const Backend>> backends = backends_of(user.backends);
  UserPlacement left = UserPlacement::of(module);
  left.nodes.clear();
  left.measured.clear();
  std::set<std::string> found_nodes;
  std::vector<std::string> known_nodes;
  Tallies tallies;
  const bool is_mixed = has_providers(module);
  uint32_t highest = highest_number(module);
  const std::vector<IRModule::Entry> entries = module.functions();
  for (const auto& [name, base] : entries) {
    auto function = cast<Function>(base);
    if (!function || !takes_part(*function)) continue;
    const UserPlacement::Providers by_variable =
        graph::providers_of(function->attrs, kPlacement, function->origin);
    if (backends.empty() && by_variable.empty() && user.nodes.empty() && !is_mixed) continue;
    function = with_own_numbers(function, highest);
    if (!has_unique_names(*function)) function = graph::with_inferred_types(module, function);
    FunctionPlacement decided(module, function, backends, user.measured, tallies);
    decided.want_variables(by_variable);
    for (const auto& [node, wanted] : user.nodes) {
      decided.check_known(wanted, fmt::format("--place {}={}", node, wanted));
      if (decided.want_node(node, wanted)) found_nodes.insert(node);
    }
    AttrValue::Map placement = decided.run(graph::target_of(module));
    decided.add_for_kernels(left.kernels);
    module.set(name, with(*function, [&](Function& copy) {
                 copy.attrs.erase(kPlacement);
                 if (!placement.empty()) copy.attrs.set(kPlacement, std::move(placement));
               }));
    walk<Binding>(function->body, [&](const Binding& binding) {
      each_node(origin_of(binding), [&](const std::string& node) { known_nodes.push_back(node); });
    });
  }
  for (const auto& [node, wanted] : user.nodes) {
    if (found_nodes.count(node)) continue;
    if (const std::string taker = taker_of(module, node); !taker.empty()) {
      // SelectKernels has heeded what was asked of kernels.
      const auto kernel = module.find<tir::PrimFunc>(taker);
      if (is_of_kernels(wanted) && kernel && kernel->attrs.contains(graph::kComputes)) continue;
      throw CompileError(kBadPlacement, {}, "--place {}={}: `{}` computes it already", node, wanted,
                         taker);
    }
    throw CompileError(kBadPlacement, {}, "--place {}={}: no operator is left of a node `{}`{}",
                       node, wanted, node, did_you_mean(node, known_nodes));
  }
  report_patterns(backends, tallies);
  return graph::drop_unused_kernels(left.in(std::move(module)));
}

std::vector<Found> placed_matches(const IRModule& module, const Ref<Function>& function) {
  const UserPlacement::Providers placement =
      graph::providers_of(function->attrs, kPlacement, function->origin);
  std::set<std::string> missing;
  for (const auto& [variable, provider] : placement)
    if (provider != kNoProvider) missing.insert(variable);
  std::vector<Found> out;
  if (missing.empty()) return out;
  const PlacementSearch search(module, function);
  std::unordered_map<const Node*, std::string> taken;
  walk<Binding>(function->body, [&](const Binding& binding) {
    const std::string& variable = binding.var->name;
    if (!missing.count(variable)) return;
    missing.erase(variable);
    const std::string& wanted = placement.at(variable);
    const Origin origin = origin_of(binding);
    const std::string backend_name = graph::backend_part(wanted);
    const auto backend = graph::find_backend(backend_name);
    if (!backend)
      throw CompileError(kBadPlacement, origin,
                         "placement of `{}`: no back end `{}`; there are: {}", variable,
                         backend_name, list_of(backend_names()));
    const std::string pattern = wanted == backend->name ? "" : wanted;
    std::string why;
    for (Found& found : search.at(*backend, Ref<Binding>(&binding), pattern)) {
      if (!found.verdict.accepted) {
        why += (why.empty() ? "" : "; ") + found.name() + ": " + found.verdict.code +
               (found.verdict.words.empty() ? "" : ": " + found.verdict.words);
        continue;
      }
      for (const Ref<Binding>& part : found.match.bindings) {
        const auto [other, is_new] = taken.emplace(part->var.get(), variable);
        if (!is_new)
          throw CompileError(kBadPlacement, origin,
                             "placements of `{}` and `{}` overlap: both take `{}`", other->second,
                             variable, part->var->name);
      }
      out.push_back(std::move(found));
      return;
    }
    throw CompileError(kBadPlacement, origin, "placement of `{}`: {}", variable,
                       why.empty() ? "`" + wanted + "` does not match here" : why);
  });
  if (!missing.empty())
    throw CompileError(kBadPlacement, function->origin,
                       "attribute `placement` names `{}`, which nothing is bound to",
                       *missing.begin());
  return out;
}

IRModule dispatch_placement(IRModule module) {
  const std::vector<IRModule::Entry> entries = module.functions();
  for (const auto& [name, base] : entries) {
    auto function = cast<Function>(base);
    if (!function || !function->attrs.contains(kPlacement)) continue;
    std::vector<graph::Replacement> replacements;
    for (Found& found : placed_matches(module, function))
      replacements.push_back({std::move(found.match), std::move(found.composite)});
    module.set(name, with(*graph::with_composites(module, function, replacements),
                          [&](Function& copy) { copy.attrs.erase(kPlacement); }));
  }
  return module;
}

}  // namespace tenon::tune
