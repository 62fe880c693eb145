// SPDX-License-Identifier: Apache-2.0
// Groups calls of PrimFuncs that can run as one kernel.
//
// Bindings are visited from the last to the first. A call joins the group of its users where all of
// them are in one group and the kinds allow it; then nothing outside the group ever sees its value,
// so a group has one output and cannot take part in a cycle. Operator kinds and the idea of an
// anchor follow TVM's FuseOps.

#include <algorithm>
#include <map>

#include "tenon/graph/transforms.h"
#include "tenon/graph/transforms/rebuild.h"
#include "tenon/support/remarks.h"
#include "tenon/tir/concat.h"

namespace tenon::graph {

namespace {

struct Member {
  const Binding* binding;
  const Call* call;  // call_tir
  FusionKind kind;
  int group = -1;
};

struct Group {
  std::vector<int> members;  // indices, in order of bindings after sorting
  FusionKind tallest = FusionKind::kElementwise;
  bool has_contraction = false;
  bool has_reduction = false;
};

FusionKind kind_of(const IRModule& module, const Call& call) {
  const auto* ref = call.args.empty() ? nullptr : call.args[0].as<FuncRef>();
  const auto function = ref ? module.find<tir::PrimFunc>(ref->name) : nullptr;
  const auto kind = function ? function->attrs.get<int64_t>("op_pattern") : std::nullopt;
  if (!kind || call.type_args.size() != 1 || !call.type_args[0].as<TensorType>())
    return FusionKind::kOpaque;
  if (function->attrs.flag("tir.is_scheduled")) return FusionKind::kOpaque;
  return static_cast<FusionKind>(*kind);
}

bool same_shape(const Type& a, const Type& b) {
  const auto* x = a.as<TensorType>();
  const auto* y = b.as<TensorType>();
  if (!x || !y || !x->shape || !y->shape || x->ndim != y->ndim) return false;
  for (int64_t i = 0; i < x->ndim; ++i)
    if (!structural_equal(x->dim(i), y->dim(i))) return false;
  return true;
}

class Grouper {
 public:
  explicit Grouper(const IRModule& module) : module_(module) {}

  /// The groups of two or more members in one dataflow block.
  std::vector<std::vector<const Binding*>> run(const BindingBlock& block,
                                               const Function& function) {
    for (const Ref<Binding>& binding : block.bindings) {
      const auto* call = binding->value.as<Call>();
      if (!call || binding->match || !call->is("call_tir")) continue;
      index_[binding->var.get()] = static_cast<int>(members_.size());
      members_.push_back({binding.get(), call, kind_of(module_, *call)});
    }
    find_users(block, function);
    for (int i = static_cast<int>(members_.size()); i-- > 0;) place(i);
    std::vector<std::vector<const Binding*>> out;
    for (Group& group : groups_) {
      if (group.members.size() < 2 && !has_scalar_constant(group)) continue;
      std::sort(group.members.begin(), group.members.end());
      std::vector<const Binding*> bindings;
      for (const int m : group.members)
        bindings.push_back(members_[static_cast<size_t>(m)].binding);
      out.push_back(std::move(bindings));
    }
    return out;
  }

 private:
  // A call alone becomes a kernel of its own where that turns a one-element constant into an
  // immediate.
  bool has_scalar_constant(const Group& group) const {
    const Member& member = members_[static_cast<size_t>(group.members[0])];
    if (member.kind > FusionKind::kContraction) return false;
    for (const Value& item : member.call->args.at(1).as<Tuple>()->values) {
      const auto* constant = item.as<Constant>();
      if (constant && constant->data->elements() == 1) return true;
    }
    return false;
  }

  // users_[i]: members that take i as an argument; escapes_[i]: something else uses it (an output,
  // a reshape).
  void find_users(const BindingBlock& block, const Function& function) {
    users_.resize(members_.size());
    escapes_.assign(members_.size(), false);
    std::unordered_map<const Node*, int> seen;
    const auto visit = [&](const NodePtr& node, int user) {
      walk(node, [&](const NodePtr& inner) {
        const auto it = index_.find(inner.get());
        if (it == index_.end()) return;
        if (user < 0) {
          escapes_[static_cast<size_t>(it->second)] = true;
        } else {
          users_[static_cast<size_t>(it->second)].push_back(user);
        }
      });
    };
    for (const Ref<Binding>& binding : block.bindings) {
      const auto it = index_.find(binding->var.get());
      visit(binding->value, it == index_.end() ? -1 : it->second);
    }
    // Uses outside this block: everything else of the function.
    for (const Ref<BindingBlock>& other : function.body->blocks)
      if (other.get() != &block) visit(other, -1);
    visit(function.body->body, -1);
  }

  void place(int i) {
    const size_t at = static_cast<size_t>(i);
    Member& member = members_[at];
    const int target = escapes_[at] || users_[at].empty() ? -1 : common_group(at);
    std::string reason = escapes_[at]         ? "used-outside"
                         : users_[at].empty() ? ""
                                              : "users-in-several-groups";
    if (target >= 0) {
      reason = refusal(member, users_[at], groups_[static_cast<size_t>(target)]);
      if (reason.empty()) {
        join(i, target);
        return;
      }
    }
    if (!reason.empty())
      record({"FuseOps",
              member.binding->var->name,
              "not-fused",
              reason,
              {},
              "",
              member.binding->origin});
    groups_.emplace_back();
    join(i, static_cast<int>(groups_.size()) - 1);
  }

  int common_group(size_t i) const {
    int group = -2;
    for (const int user : users_[i]) {
      const int g = members_[static_cast<size_t>(user)].group;
      if (group != -2 && g != group) return -1;
      group = g;
    }
    return group;
  }

  void join(int i, int g) {
    Member& member = members_[static_cast<size_t>(i)];
    Group& group = groups_[static_cast<size_t>(g)];
    member.group = g;
    group.members.push_back(i);
    group.tallest = std::max(group.tallest, member.kind);
    group.has_contraction |= member.kind == FusionKind::kContraction;
    group.has_reduction |= member.kind == FusionKind::kReduction;
  }

  /// Why `member` cannot join the group of its users; empty where it can.
  std::string refusal(const Member& member, const std::vector<int>& users,
                      const Group& group) const {
    constexpr size_t kMostMembers =
        32;  // kernels of more statements gain nothing and compile slowly
    if (group.members.size() >= kMostMembers) return "group-full";
    if (member.kind > FusionKind::kContraction) return "opaque";
    if (group.tallest > FusionKind::kContraction) return "opaque-user";
    const Type out =
        members_[static_cast<size_t>(*std::max_element(group.members.begin(), group.members.end()))]
            .binding->var->type;
    const Type& own = member.binding->var->type;
    if (member.kind == FusionKind::kContraction || member.kind == FusionKind::kReduction) {
      if (group.has_contraction || group.has_reduction) return "second-anchor";
      if (group.tallest > FusionKind::kBroadcast) return "injective-after-anchor";
      return same_shape(own, out) ? "" : "anchor-is-broadcast";
    }
    // What made it may have an anchor of its own: then the narrow elements are what is stored.
    if ((group.has_contraction || group.has_reduction) && narrows(member)) return "narrow-result";
    if (takes_first_rows(member) && std::all_of(users.begin(), users.end(), [&](int u) {
          return members_[static_cast<size_t>(u)].kind == FusionKind::kContraction;
        }))
      return "";  // the contraction reads them where they are
    // An element-wise or injective producer is computed again wherever its users need an element.
    for (const int u : users) {
      const Member& user = members_[static_cast<size_t>(u)];
      if (user.kind == FusionKind::kContraction) return "operand-of-contraction";
      if (user.kind == FusionKind::kReduction && group.has_contraction)
        return "operand-of-contraction";
      const bool repeated =
          user.kind <= FusionKind::kBroadcast && !same_shape(own, user.binding->var->type);
      if (repeated && member.kind != FusionKind::kInjective) return "would-be-recomputed";
    }
    if (group.has_contraction && member.kind == FusionKind::kInjective)
      return "injective-into-epilogue";
    if (group.has_reduction && has_window(users) && ends_contraction(member))
      return "read-by-a-window";
    if (group.members.size() == 1 && (ends_contraction(member) || joins_results(member)) &&
        joins_results(members_[static_cast<size_t>(group.members[0])]))
      return "part-of-a-concat";
    return "";
  }

  /// Whether the member joins results of kernels, each of which can write its own straight into the whole
  /// (ElideConcats). Bias and activation are then better computed by these kernels.
  bool joins_results(const Member& member) const {
    const auto kernel = module_.find<tir::PrimFunc>(member.call->args[0].as<FuncRef>()->name);
    if (!tir::concat_parts(*kernel)) return false;
    const auto& parts = member.call->args.at(1).as<Tuple>()->values;
    return std::all_of(parts.begin(), parts.end(), [&](const Value& part) {
      const auto found = index_.find(part.get());
      if (found == index_.end() || escapes_[static_cast<size_t>(found->second)]) return false;
      const Member& made = members_[static_cast<size_t>(found->second)];
      return made.kind > FusionKind::kInjective || ends_contraction(made) || joins_results(made);
    });
  }

  /// Whether one of these reads an element of its operand several times, as a window does that moves by
  /// less than its length: what is computed for it is a pass of its own. Of constant sizes only.
  bool has_window(const std::vector<int>& users) const {
    return std::any_of(users.begin(), users.end(), [&](int u) {
      const Member& user = members_[static_cast<size_t>(u)];
      if (user.kind != FusionKind::kReduction) return false;
      const auto kernel = module_.find<tir::PrimFunc>(user.call->args[0].as<FuncRef>()->name);
      if (kernel->buffers.empty() || !kernel->buffers[0]) return false;
      int64_t given = 1;
      for (const Expr& dim : kernel->buffers[0]->shape) given *= as_int(dim).value_or(0);
      bool found = false;
      walk<tir::Block>(kernel->body, [&](const tir::Block& block) {
        int64_t read = 1;
        for (const tir::IterVar& iter : block.iter_vars)
          read *= as_int(iter.domain.extent).value_or(0);
        found = found || (given > 0 && read > given);
      });
      return found;
    });
  }

  /// Whether the member is element-wise, and so is all between it and a contraction that nothing else
  /// reads: it computes on sums while they are in registers.
  bool ends_contraction(const Member& member) const {
    const Type& shape = member.binding->var->type;
    const Member* at = &member;
    while (at->kind <= FusionKind::kBroadcast) {
      const Member* next = nullptr;
      for (const Value& item : at->call->args.at(1).as<Tuple>()->values) {
        const auto found = index_.find(item.get());
        if (found == index_.end()) continue;
        const auto i = static_cast<size_t>(found->second);
        if (!escapes_[i] && users_[i].size() == 1 && same_shape(type_of(item), shape))
          next = &members_[i];
      }
      if (!next) return false;
      at = next;
    }
    return at->kind == FusionKind::kContraction;
  }

  /// Whether its result is the beginning of its operand along every axis: result[i, j] is x[i, j].
  bool takes_first_rows(const Member& member) const {
    if (member.kind != FusionKind::kInjective) return false;
    const auto kernel = module_.find<tir::PrimFunc>(member.call->args[0].as<FuncRef>()->name);
    int stores = 0;
    bool same = true;
    walk<tir::BufferStore>(kernel->body, [&](const tir::BufferStore& store) {
      const auto* load = store.value.as<tir::BufferLoad>();
      ++stores;
      same = same && load && load->indices.size() == store.indices.size() &&
             std::equal(load->indices.begin(), load->indices.end(), store.indices.begin(),
                        [](const Expr& a, const Expr& b) { return a.same_as(b); });
    });
    return stores == 1 && same;
  }

  /// Whether 8 bits are made of more, as by `quantize`.
  static bool narrows(const Member& member) {
    const auto bits = [](const Value& value) {
      const Type type = type_of(value);
      const auto* tensor = type.as<TensorType>();
      return tensor && !tensor->dtype.is_bool() && !tensor->dtype.is_void() ? tensor->dtype.bits
                                                                            : 0;
    };
    if (bits(member.binding->var) != 8) return false;
    const std::vector<Value>& args = member.call->args.at(1).as<Tuple>()->values;
    return !args.empty() && bits(args[0]) > 8;
  }

  const IRModule& module_;
  std::vector<Member> members_;
  std::vector<Group> groups_;
  std::unordered_map<const Node*, int> index_;
  std::vector<std::vector<int>> users_;
  std::vector<bool> escapes_;
};

/// Name of the fused function: those of its parts, joined.
std::string fused_name(const std::vector<const Binding*>& bindings) {
  std::string name = "fused";
  for (const Binding* binding : bindings) {
    const auto* ref = binding->value.as<Call>()->args[0].as<FuncRef>();
    std::string part = ref->name;
    while (!part.empty() &&
           (std::isdigit(static_cast<unsigned char>(part.back())) || part.back() == '_'))
      part.pop_back();
    name += "_" + part;
  }
  constexpr size_t kLongest = 80;
  return name.substr(0, kLongest);
}

/// The private function of a group, and the arguments that its call needs: the values from outside,
/// in order of use.
struct Outlined {
  Ref<Function> function;
  std::vector<Value> args;
};

/// Dimensions that `body` names and no parameter's type defines, in order of appearance.
std::vector<Expr> undefined_dims(const std::vector<Ref<Var>>& params, const NodePtr& body) {
  std::unordered_map<const Node*, bool> defined;
  for (const Ref<Var>& param : params) {
    const auto* tensor = param->type.as<TensorType>();
    if (!tensor || !tensor->shape) continue;
    for (const Expr& dim : *tensor->shape)
      if (dim.as<tenon::Var>()) defined[dim.get()] = true;
  }
  std::vector<Expr> out;
  const auto collect = [&](const NodePtr& root) {
    walk(root, [&](const NodePtr& node) {
      const auto* var = node.as<tenon::Var>();
      if (var && defined.emplace(var, true).second) out.push_back(ref_to(var));
    });
  };
  for (const Ref<Var>& param : params) collect(param->type);
  collect(body);
  return out;
}

Outlined outline(const std::vector<const Binding*>& bindings) {
  std::unordered_map<const Node*, bool> inside;
  for (const Binding* binding : bindings) inside[binding->var.get()] = true;
  std::vector<Ref<Var>> params;
  std::vector<Value> args;
  std::unordered_map<const Node*, Value> param_of_var;
  std::unordered_map<NodePtr, Value, StructuralHash, StructuralEqual> param_of_item;
  const auto parameter = [&](const Value& value) -> Value {
    if (value.as<Constant>()) {
      // A one-element constant stays: composing the kernels makes it an immediate.
      if (value.as<Constant>()->data->elements() == 1) return value;
    }
    if (value.as<Var>() && inside.count(value.get())) return value;
    auto& slot = value.as<Var>() ? param_of_var[value.get()] : param_of_item[value];
    if (!slot) {
      const auto param = make<Var>(fmt::format("param_{}", params.size()), type_of(value));
      params.push_back(param);
      args.push_back(value);
      slot = param;
    }
    return slot;
  };
  std::vector<Ref<Binding>> body;
  Rewriter renamer;
  std::vector<Origin> origins;
  for (size_t i = 0; i < bindings.size(); ++i) {
    const Call& call = *bindings[i]->value.as<Call>();
    std::vector<Value> operands;
    for (const Value& item : call.args.at(1).as<Tuple>()->values)
      operands.push_back(renamer(parameter(item)));
    std::vector<Value> call_args = {call.args[0], make<Tuple>(std::move(operands))};
    for (size_t k = 2; k < call.args.size(); ++k) call_args.push_back(call.args[k]);
    const bool last = i + 1 == bindings.size();
    const auto var =
        make<Var>(bindings[i]->var->name, bindings[i]->var->type, !last, bindings[i]->var->origin);
    renamer.replace(bindings[i]->var, var);
    body.push_back(make<Binding>(
        var, make<Call>(call.op, std::move(call_args), call.attrs, call.type_args, call.origin),
        Type(), bindings[i]->origin));
    origins.push_back(bindings[i]->origin ? bindings[i]->origin : call.origin);
  }
  const Value result = body.back()->var;
  const auto block = make<BindingBlock>(std::move(body), true);
  const auto sequence = make<SeqExpr>(std::vector<Ref<BindingBlock>>{block}, result);
  // A dimension that stands in no parameter by itself (n * m alone) comes in through a shape, which
  // stands before the parameters that need it.
  if (std::vector<Expr> dims = undefined_dims(params, sequence); !dims.empty()) {
    params.insert(params.begin(), make<Var>("dims", make<ShapeType>(dims)));
    args.insert(args.begin(), make<ShapeExpr>(std::move(dims)));
  }
  Attrs attrs = {{"Primitive", true}};
  const Ref<Function> shared =
      with(make<Function>(std::move(params), sequence, bindings.back()->var->type, std::move(attrs),
                          true, Origin::merge(origins)),
           [&](Function& made) { made.is_private = true; });
  return {renew_definitions(shared), std::move(args)};
}

}  // namespace

IRModule fuse_ops(IRModule module) {
  const std::vector<IRModule::Entry> entries = module.functions();
  std::unordered_map<NodePtr, std::string, StructuralHash, StructuralEqual> known;
  for (const auto& [name, function] : entries) {
    const auto graph = cast<Function>(function);
    if (!graph || graph->attrs.flag("Primitive")) continue;
    // For each last binding of a group, its members; the others of a group are dropped.
    std::unordered_map<const Node*, std::vector<const Binding*>> ends;
    std::unordered_map<const Node*, bool> inner;
    for (const Ref<BindingBlock>& block : graph->body->blocks) {
      if (!block->is_dataflow) continue;
      for (auto& group : Grouper(module).run(*block, *graph)) {
        for (size_t i = 0; i + 1 < group.size(); ++i) inner[group[i]->var.get()] = true;
        ends.emplace(group.back()->var.get(), std::move(group));
      }
    }
    std::vector<Ref<BindingBlock>> blocks;
    for (const Ref<BindingBlock>& block : graph->body->blocks) {
      std::vector<Ref<Binding>> bindings;
      for (const Ref<Binding>& binding : block->bindings) {
        if (inner.count(binding->var.get())) continue;
        const auto end = ends.find(binding->var.get());
        if (end == ends.end()) {
          bindings.push_back(binding);
          continue;
        }
        Outlined outlined = outline(end->second);
        std::string& known_name = known[outlined.function];
        if (known_name.empty())
          known_name = module.add_unique(fused_name(end->second), outlined.function);
        const auto call =
            make<Call>(make<FuncRef>(known_name), std::move(outlined.args), Attrs(),
                       std::vector<Type>{binding->var->type}, outlined.function->origin);
        bindings.push_back(make<Binding>(binding->var, call, Type(), outlined.function->origin));
        record({"FuseOps",
                known_name,
                "fused",
                "",
                {{"calls", static_cast<double>(end->second.size())}},
                "",
                outlined.function->origin});
      }
      blocks.push_back(make<BindingBlock>(std::move(bindings), block->is_dataflow, block->origin));
    }
    module.set(name, graph->with_body(
                         make<SeqExpr>(std::move(blocks), graph->body->body, graph->body->origin)));
  }
  return module;
}

}  // namespace tenon::graph
