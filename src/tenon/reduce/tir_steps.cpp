// SPDX-License-Identifier: Apache-2.0
// Steps over PrimFuncs: each numbers nodes of one kind over all functions, in the order of a walk.
#include <algorithm>
#include <set>

#include "tenon/reduce/steps.h"
#include "tenon/tir/stmt.h"

namespace tenon::reduce {

namespace {

using tir::PrimFunc;
using tir::Stmt;

// What may stand for a node: nothing to keep it.
using Replacement = std::optional<NodePtr>;

// The nodes of PrimFuncs that a step can replace.
template <bool (*accepts)(const NodePtr&)>
std::vector<const Node*> nodes_of(const IRModule& module) {
  std::vector<const Node*> nodes;
  for (const auto& [name, function] : module.functions())
    if (const auto* prim = function.template as<PrimFunc>())
      walk(prim->body, [&](const NodePtr& node) {
        if (accepts(node)) nodes.push_back(node.get());
      });
  return nodes;
}

// Replaces chosen nodes, then sees what is inside of the replacement.
class NodeReplacer final : public Rewriter {
 public:
  NodeReplacer(std::set<const Node*> chosen, NodePtr (*replacement)(const NodePtr&))
      : chosen_(std::move(chosen)), replacement_(replacement) {}

 protected:
  NodePtr rewrite(const NodePtr& node) override {
    if (chosen_.erase(node.get()) == 0) return rewrite_members(node);
    const NodePtr next = replacement_(node);
    return !next || next.same_as(node) ? rewrite_members(node) : (*this)(next);
  }

 private:
  std::set<const Node*> chosen_;
  NodePtr (*replacement_)(const NodePtr&);
};

template <bool (*accepts)(const NodePtr&), NodePtr (*replacement)(const NodePtr&)>
std::optional<IRModule> replace_nodes(const IRModule& module, size_t begin, size_t end) {
  const std::vector<const Node*> nodes = nodes_of<accepts>(module);
  IRModule out = module;
  NodeReplacer replacer({nodes.begin() + static_cast<std::ptrdiff_t>(begin),
                         nodes.begin() + static_cast<std::ptrdiff_t>(end)},
                        replacement);
  for (const auto& [name, function] : module.functions())
    if (const auto* prim = function.template as<PrimFunc>())
      out.set(name, prim->with_body(downcast<tir::StmtNode>(replacer(NodePtr(prim->body)))));
  return out;
}

template <bool (*accepts)(const NodePtr&), NodePtr (*replacement)(const NodePtr&)>
Step node_step(std::string_view name) {
  return {name, [](const IRModule& module) { return nodes_of<accepts>(module).size(); },
          [](const IRModule& module, size_t begin, size_t end) {
            return replace_nodes<accepts, replacement>(module, begin, end);
          }};
}

Stmt nothing() { return make<tir::Evaluate>(int32(0)); }
bool is_nothing(const NodePtr& node) {
  const auto* evaluate = node.as<tir::Evaluate>();
  return evaluate && evaluate->value.as<IntImm>();
}

// ---- statements ---------------------------------------------------------------------------------

bool can_go(const NodePtr& node) {
  return node.as<tir::StmtNode>() && !node.as<tir::Seq>() && !node.as<tir::Block>() &&
         !is_nothing(node);
}
NodePtr gone(const NodePtr&) { return nothing(); }

bool is_sequence(const NodePtr& node) {
  const auto* sequence = node.as<tir::Seq>();
  return sequence && std::any_of(sequence->stmts.begin(), sequence->stmts.end(),
                                 [](const Stmt& stmt) { return is_nothing(stmt); });
}
NodePtr without_nothing(const NodePtr& node) {
  std::vector<Stmt> kept;
  for (const Stmt& stmt : node.as<tir::Seq>()->stmts)
    if (!is_nothing(stmt)) kept.push_back(stmt);
  return kept.empty() ? NodePtr(nothing()) : NodePtr(tir::seq(std::move(kept)));
}

// ---- control flow -------------------------------------------------------------------------------

bool is_loop(const NodePtr& node) { return node.as<tir::For>() != nullptr; }
NodePtr first_iteration(const NodePtr& node) {
  const auto* loop = node.as<tir::For>();
  return substitute(loop->body, {{loop->loop_var.get(), loop->min}});
}
NodePtr half_as_long(const NodePtr& node) {
  const auto* loop = node.as<tir::For>();
  const auto* extent = loop->extent.as<IntImm>();
  if (!extent || extent->value < 2) return node;
  // Replaced once: what comes out is not seen as a loop again.
  return loop->with(loop->min, make<IntImm>(extent->dtype, extent->value / 2), loop->body);
}
bool is_special_loop(const NodePtr& node) {
  const auto* loop = node.as<tir::For>();
  return loop && (loop->kind != tir::ForKind::kSerial || !loop->annotations.empty());
}
NodePtr plain_loop(const NodePtr& node) {
  const auto* loop = node.as<tir::For>();
  return make<tir::For>(loop->loop_var, loop->min, loop->extent, tir::ForKind::kSerial, loop->body,
                        Attrs(), loop->origin);
}

bool is_branch(const NodePtr& node) { return node.as<tir::IfThenElse>() != nullptr; }
NodePtr then_case(const NodePtr& node) { return node.as<tir::IfThenElse>()->then_case; }
bool has_else(const NodePtr& node) {
  const auto* branch = node.as<tir::IfThenElse>();
  return branch && branch->else_case;
}
NodePtr else_case(const NodePtr& node) { return node.as<tir::IfThenElse>()->else_case; }

// ---- blocks -------------------------------------------------------------------------------------

bool is_block(const NodePtr& node) {
  const auto* realize = node.as<tir::BlockRealize>();
  return realize && !realize->block->iter_vars.empty() && realize->block->alloc_buffers.empty() &&
         realize->block->match_buffers.empty();
}
// The statements of a block, with the values of its axes.
NodePtr unwrapped(const NodePtr& node) {
  const auto* realize = node.as<tir::BlockRealize>();
  const tir::Block& block = *realize->block;
  Substitution values;
  for (size_t i = 0; i < block.iter_vars.size(); ++i)
    values.emplace(block.iter_vars[i].var.get(), realize->iter_values[i]);
  return substitute(block.body, values);
}
bool has_init(const NodePtr& node) {
  const auto* block = node.as<tir::Block>();
  return block && block->init;
}
NodePtr without_init(const NodePtr& node) {
  auto parts = node.as<tir::Block>()->parts();
  parts.init = {};
  return make<tir::Block>(std::move(parts), node.get()->origin);
}
bool has_annotations(const NodePtr& node) {
  const auto* block = node.as<tir::Block>();
  return block && !block->annotations.empty();
}
NodePtr without_annotations(const NodePtr& node) {
  auto parts = node.as<tir::Block>()->parts();
  parts.annotations = {};
  return make<tir::Block>(std::move(parts), node.get()->origin);
}
bool has_idle_buffers(const NodePtr& node) {
  const auto* block = node.as<tir::Block>();
  return block && !block->alloc_buffers.empty();
}
NodePtr without_idle_buffers(const NodePtr& node) {
  auto parts = node.as<tir::Block>()->parts();
  std::set<const Node*> used;
  walk(parts.body, [&](const NodePtr& inner) { used.insert(inner.get()); });
  std::erase_if(parts.alloc_buffers, [&](const auto& buffer) { return !used.count(buffer.get()); });
  if (parts.alloc_buffers.size() == node.as<tir::Block>()->alloc_buffers.size()) return node;
  return make<tir::Block>(std::move(parts), node.get()->origin);
}

// ---- expressions --------------------------------------------------------------------------------

bool is_operation(const NodePtr& node) {
  return node.as<ExprNode>() && node.get()->height() > 1 && !node.as<tenon::Var>();
}
// The first operand of the same type, below loads too: a simpler value in its place.
NodePtr operand(const NodePtr& node) {
  const DType dtype = node.as<ExprNode>()->dtype;
  NodePtr found;
  each_member(node, [&](const NodePtr& member, FieldRole) {
    const auto* expr = member.as<ExprNode>();
    if (!found && expr && expr->dtype == dtype) found = member;
  });
  return found ? found : node;
}
NodePtr last_operand(const NodePtr& node) {
  const DType dtype = node.as<ExprNode>()->dtype;
  NodePtr found;
  each_member(node, [&](const NodePtr& member, FieldRole) {
    const auto* expr = member.as<ExprNode>();
    if (expr && expr->dtype == dtype) found = member;
  });
  return found ? found : node;
}
bool is_number_operation(const NodePtr& node) {
  const auto* expr = node.as<ExprNode>();
  return expr && is_operation(node) && expr->dtype.lanes == 1 &&
         (expr->dtype.is_int() || expr->dtype.is_uint() || expr->dtype.is_float());
}
NodePtr one(const NodePtr& node) {
  const DType dtype = node.as<ExprNode>()->dtype;
  if (dtype.is_float()) return make<FloatImm>(dtype, 1.0);
  return make<IntImm>(dtype, 1);
}

// ---- parameters ---------------------------------------------------------------------------------

// Of functions that no other calls.
std::vector<std::pair<std::string, size_t>> idle_params(const IRModule& module) {
  std::set<std::string> called;
  for (const auto& [name, function] : module.functions())
    walk<GlobalVar>(function, [&](const GlobalVar& callee) { called.insert(callee.name); });
  std::vector<std::pair<std::string, size_t>> out;
  for (const auto& [name, function] : module.functions()) {
    const auto* prim = function.as<PrimFunc>();
    // The attributes of a lowered program list its parameters.
    if (!prim || called.count(name) || prim->attrs.contains("tenon.num_inputs")) continue;
    std::set<const Node*> used;
    walk(prim->body, [&](const NodePtr& node) { used.insert(node.get()); });
    for (size_t i = 0; i < prim->params.size(); ++i)
      if (!used.count(prim->params[i].get()) &&
          (!prim->buffers[i] || !used.count(prim->buffers[i].get())))
        out.emplace_back(name, i);
  }
  return out;
}

std::optional<IRModule> without_idle_params(IRModule module, size_t begin, size_t end) {
  const auto idle = idle_params(module);
  // From the last on, so that the numbers of the others stay.
  for (size_t i = end; i-- > begin;) {
    const auto& [name, index] = idle[i];
    const auto at = static_cast<std::ptrdiff_t>(index);
    module.set(name, with(module.find<PrimFunc>(name), [&](PrimFunc& copy) {
                 copy.params.erase(copy.params.begin() + at);
                 copy.buffers.erase(copy.buffers.begin() + at);
               }));
  }
  return module;
}

}  // namespace

std::vector<Step> tir_steps() {
  return {
      node_step<can_go, gone>("statements"),
      node_step<is_sequence, without_nothing>("empty statements"),
      node_step<is_loop, first_iteration>("loops"),
      node_step<is_loop, half_as_long>("extents"),
      node_step<is_branch, then_case>("conditions"),
      node_step<has_else, else_case>("first branches"),
      node_step<is_block, unwrapped>("blocks"),
      node_step<has_init, without_init>("initial values"),
      node_step<is_special_loop, plain_loop>("kinds of loops"),
      node_step<has_annotations, without_annotations>("annotations"),
      node_step<has_idle_buffers, without_idle_buffers>("unused buffers"),
      node_step<is_operation, operand>("operations"),
      node_step<is_operation, last_operand>("first operands"),
      node_step<is_number_operation, one>("values"),
      {"unused parameters", [](const IRModule& module) { return idle_params(module).size(); },
       [](const IRModule& module, size_t begin, size_t end) {
         return without_idle_params(module, begin, end);
       }},
  };
}

}  // namespace tenon::reduce
