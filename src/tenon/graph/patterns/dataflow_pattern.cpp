// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/patterns/dataflow_pattern.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "tenon/graph/patterns/pattern_context.h"
#include "tenon/ir/visit.h"

namespace tenon::graph {

namespace {

std::vector<PatternPtr> nodes(const std::vector<DFPattern>& patterns) {
  return {patterns.begin(), patterns.end()};
}

// A copy of every node, shared where the original is.
class Duplicate : public Rewriter {
 public:
  PatternPtr copy(const PatternPtr& pattern) { return (*this)(pattern); }

 protected:
  NodePtr rewrite(const NodePtr& node) override {
    if (!node.as<PatternNode>()) return node;
    const NodePtr next = rewrite_members(node);
    return next.same_as(node) ? NodePtr(node.get()->type().clone(*node.get())) : next;
  }
};

}  // namespace

DFPattern DFPattern::call(std::vector<DFPattern> args) const {
  return make<CallPattern>(*this, nodes(args), false);
}
DFPattern DFPattern::call_with_more(std::vector<DFPattern> args) const {
  return make<CallPattern>(*this, nodes(args), true);
}
DFPattern DFPattern::call_with_any() const { return call_with_more({}); }
DFPattern DFPattern::operator[](int64_t index) const { return is_tuple_get_item(*this, index); }
DFPattern DFPattern::has_dtype(DType dtype) const { return make<DTypePattern>(*this, dtype); }
DFPattern DFPattern::has_shape(std::vector<Expr> dims) const {
  return make<ShapePattern>(*this, std::move(dims));
}
DFPattern DFPattern::has_shape(const std::vector<int64_t>& dims) const {
  std::vector<Expr> exprs;
  for (const int64_t dim : dims) exprs.push_back(int64(dim));
  return has_shape(std::move(exprs));
}
DFPattern DFPattern::has_attr(Attrs attrs) const {
  return make<AttrPattern>(*this, std::move(attrs));
}
DFPattern DFPattern::has_type(graph::Type type) const {
  return make<TypePattern>(*this, std::move(type));
}
DFPattern DFPattern::dup() const { return Duplicate().copy(*this); }

PatternSeq DFPattern::used_by(const PatternSeq& users, int64_t index) const {
  return PatternSeq(*this).used_by(users, index);
}
PatternSeq DFPattern::only_used_by(const PatternSeq& users, int64_t index) const {
  return PatternSeq(*this).only_used_by(users, index);
}
PatternSeq DFPattern::fork_to(const std::vector<DFPattern>& users) const {
  PatternSeq out(*this);
  for (const DFPattern& user : users) {
    out.patterns.push_back(user);
    out.uses.push_back({*this, user});
  }
  return out;
}

DFPattern wildcard() { return make<WildcardPattern>(); }
DFPattern is_var(std::string name) { return make<VarPattern>(std::move(name), false); }
DFPattern is_dfv(std::string name) { return make<VarPattern>(std::move(name), true); }
DFPattern is_gv(std::string name) { return make<GlobalVarPattern>(std::move(name)); }
DFPattern is_const() { return make<ConstantPattern>(); }
DFPattern is_expr(Value value) { return make<ExprPattern>(std::move(value)); }
DFPattern is_op(const std::string& name, Origin origin) {
  const OpDef* op = find_op(name);
  if (!op)
    throw CompileError(kUnknownOperator, origin,
                       "`{}` is no operator; `tenon operators` lists them", name);
  return make<OpPattern>(op, origin);
}
DFPattern extern_func(std::string symbol) { return make<ExternFuncPattern>(std::move(symbol)); }
DFPattern prim_func(Ref<tir::PrimFunc> function) {
  return make<PrimFuncPattern>(std::move(function));
}
DFPattern function_pattern(std::vector<DFPattern> params, DFPattern body) {
  return make<FunctionPattern>(nodes(params), std::move(body));
}
DFPattern is_tuple(std::vector<DFPattern> items, TupleOrder order) {
  return make<TuplePattern>(nodes(items), order == TupleOrder::kUnordered);
}
DFPattern is_tuple_get_item(DFPattern tuple, int64_t index) {
  return make<TupleGetItemPattern>(std::move(tuple), index);
}
DFPattern is_shape(std::vector<Expr> dims) { return make<ShapeExprPattern>(std::move(dims)); }
DFPattern operator|(const DFPattern& a, const DFPattern& b) { return make<OrPattern>(a, b); }
DFPattern operator&(const DFPattern& a, const DFPattern& b) { return make<AndPattern>(a, b); }
DFPattern operator~(const DFPattern& a) { return make<NotPattern>(a); }

DFPattern any_of(const std::vector<DFPattern>& patterns) {
  check(!patterns.empty(), "any_of no patterns");
  // Balanced, so that many alternatives are no deep node.
  std::vector<DFPattern> level = patterns;
  while (level.size() > 1) {
    std::vector<DFPattern> next;
    for (size_t i = 0; i < level.size(); i += 2)
      next.push_back(i + 1 < level.size() ? level[i] | level[i + 1] : level[i]);
    level = std::move(next);
  }
  return level[0];
}

DFPattern is_call_tir(const CallTIRPattern& parts) {
  std::vector<DFPattern> args = {parts.function ? parts.function : is_gv()};
  args.push_back(parts.args ? is_tuple(*parts.args) : wildcard());
  const DFPattern op = is_op("call_tir");
  if (!parts.tir_vars) return op.call_with_more(std::move(args));
  args.push_back(parts.tir_vars);
  return op.call(std::move(args));
}
DFPattern is_call_tir(std::string name, std::optional<std::vector<DFPattern>> args,
                      DFPattern tir_vars) {
  return is_call_tir({is_gv(std::move(name)), std::move(args), std::move(tir_vars)});
}
DFPattern is_call_tir(Ref<tir::PrimFunc> function, std::optional<std::vector<DFPattern>> args,
                      DFPattern tir_vars) {
  return is_call_tir({prim_func(std::move(function)), std::move(args), std::move(tir_vars)});
}
DFPattern is_call_dps_packed(std::string symbol, std::optional<std::vector<DFPattern>> args) {
  return is_op("call_dps_packed")(extern_func(std::move(symbol)),
                                  args ? is_tuple(std::move(*args)) : wildcard());
}
DFPattern is_call_packed(std::string symbol, std::optional<std::vector<DFPattern>> args) {
  const DFPattern callee = extern_func(std::move(symbol));
  if (!args) return callee.call_with_any() | is_op("call_pure_packed").call_with_more({callee});
  std::vector<DFPattern> pure = {callee};
  pure.insert(pure.end(), args->begin(), args->end());
  return callee.call(*args) | is_op("call_pure_packed").call(std::move(pure));
}

DFPattern make_fused_bias_activation_pattern(const FusedBiasActivation& parts) {
  DFPattern out = is_op(parts.op)(wildcard(), wildcard());
  if (parts.with_bias) out = is_op("add")(out, wildcard());
  return parts.activation.empty() ? out : is_op(parts.activation)(out);
}

// ---- constraints ------------------------------------------------------------------------------

namespace {

PatternSeq chain(const PatternSeq& producer, const PatternSeq& consumer, int64_t index, bool only) {
  PatternSeq out = producer;
  out.uses.push_back({producer.patterns.back(), consumer.patterns.front(), index, only});
  out.patterns.insert(out.patterns.end(), consumer.patterns.begin(), consumer.patterns.end());
  out.uses.insert(out.uses.end(), consumer.uses.begin(), consumer.uses.end());
  return out;
}

}  // namespace

PatternSeq PatternSeq::used_by(const PatternSeq& users, int64_t index) const {
  return chain(*this, users, index, false);
}
PatternSeq PatternSeq::only_used_by(const PatternSeq& users, int64_t index) const {
  return chain(*this, users, index, true);
}
PatternSeq PatternSeq::dup() const {
  Duplicate duplicate;
  PatternSeq out = *this;
  for (DFPattern& pattern : out.patterns) pattern = duplicate.copy(pattern);
  for (UseConstraint& use : out.uses) {
    use.producer = duplicate.copy(use.producer);
    use.consumer = duplicate.copy(use.consumer);
  }
  return out;
}
PatternSeq operator^(const PatternSeq& producer, const PatternSeq& consumer) {
  return producer.used_by(consumer);
}
PatternSeq operator>>(const PatternSeq& producer, const PatternSeq& consumer) {
  return producer.only_used_by(consumer);
}

PatternContext& PatternContext::add(const PatternSeq& seq) {
  const auto note = [&](const DFPattern& pattern) {
    for (const DFPattern& known : patterns)
      if (known.same_as(pattern)) return;
    patterns.push_back(pattern);
  };
  for (const DFPattern& pattern : seq.patterns) note(pattern);
  for (const UseConstraint& use : seq.uses) {
    note(use.producer);
    note(use.consumer);
    uses.push_back(use);
  }
  return *this;
}
void add_outermost(PatternContext& context, const std::vector<DFPattern>& made) {
  std::unordered_set<const Node*> inner;
  for (const DFPattern& pattern : made)
    tenon::walk(pattern, [&](const NodePtr& node) {
      if (!node.same_as(pattern)) inner.insert(node.get());
    });
  for (const DFPattern& pattern : made)
    if (!inner.count(pattern.get()) && pattern_size(pattern) > 0) context.add(pattern);
}

PatternContext& PatternContext::same_shape_as(std::vector<DFPattern> shaped) {
  for (const DFPattern& pattern : shaped) add(pattern);
  same_shapes.push_back(std::move(shaped));
  return *this;
}

// ---- questions about a pattern ----------------------------------------------------------------

namespace {

class Size {
 public:
  size_t of(const PatternPtr& pattern) {
    if (!pattern || pattern.as<NotPattern>()) return 0;
    const auto known = sizes_.find(pattern.get());
    if (known != sizes_.end()) return known->second;
    size_t total = pattern.as<CallPattern>() ? 1 : 0;
    if (const auto* either = pattern.as<OrPattern>()) {
      total = std::max(of(either->lhs), of(either->rhs));
    } else {
      each_member(pattern, [&](const NodePtr& member, FieldRole) {
        if (member.as<PatternNode>()) total += of(downcast<PatternNode>(member));
      });
    }
    total = std::min<size_t>(total, 1'000'000);  // sharing may make it grow without end
    sizes_.emplace(pattern.get(), total);
    return total;
  }

 private:
  std::unordered_map<const Node*, size_t> sizes_;
};

using Operators = std::optional<std::vector<const OpDef*>>;

Operators joined(Operators a, const Operators& b) {
  if (!a || !b) return std::nullopt;
  for (const OpDef* op : *b)
    if (std::find(a->begin(), a->end(), op) == a->end()) a->push_back(op);
  return a;
}

// The operators that `pattern` as a callee stands for.
Operators callee_operators(const PatternPtr& pattern) {
  if (const auto* op = pattern.as<OpPattern>()) return std::vector<const OpDef*>{op->op};
  if (const auto* either = pattern.as<OrPattern>())
    return joined(callee_operators(either->lhs), callee_operators(either->rhs));
  if (const auto* both = pattern.as<AndPattern>()) {
    Operators lhs = callee_operators(both->lhs);
    return lhs ? lhs : callee_operators(both->rhs);
  }
  if (const auto* attrs = pattern.as<AttrPattern>()) return callee_operators(attrs->pattern);
  return std::nullopt;
}

}  // namespace

size_t pattern_size(const DFPattern& pattern) { return Size().of(pattern); }

Operators root_operators(const DFPattern& pattern) {
  if (!pattern) return std::nullopt;
  if (const auto* call = pattern.as<CallPattern>()) return callee_operators(call->callee);
  if (const auto* either = pattern.as<OrPattern>())
    return joined(root_operators(either->lhs), root_operators(either->rhs));
  if (const auto* both = pattern.as<AndPattern>()) {
    Operators lhs = root_operators(both->lhs);
    return lhs ? lhs : root_operators(both->rhs);
  }
  if (const PatternPtr inner = conditioned(pattern)) return root_operators(inner);
  if (const auto* p = pattern.as<GraphPattern>()) return root_operators(p->results[0]);
  return std::nullopt;
}

}  // namespace tenon::graph
