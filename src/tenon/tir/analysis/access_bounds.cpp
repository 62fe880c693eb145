// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/analysis/access_bounds.h"

#include <algorithm>
#include <unordered_set>

#include "tenon/arith/int_set.h"
#include "tenon/tir/analysis/element_places.h"
#include "tenon/tir/analysis/points.h"
#include "tenon/tir/analysis/reduction_start.h"
#include "tenon/tir/analysis/region.h"
#include "tenon/tir/analysis/witness.h"
#include "tenon/tir/effects.h"

namespace tenon::tir {

namespace {

using Kind = AccessCheck::Kind;

// Conditions of one choice that a proof may look at both sides of.
constexpr int kMaxCases = 3;
// Nodes of a value that stands in place of its variable.
constexpr int kMostNodes = 200;

// A choice inside of `expr` by a scalar condition, not inside of a load.
struct Choice {
  Expr whole, condition, a, b;
};
std::optional<Choice> choice_in(const Expr& expr) {
  std::optional<Choice> found;
  walk_if(expr, [&](const NodePtr& node) {
    if (found || node.as<BufferLoad>()) return false;
    if (const auto* op = node.as<Select>(); op && op->condition->dtype.is_scalar())
      found = {downcast<ExprNode>(node), op->condition, op->true_value, op->false_value};
    if (const auto* op = node.as<Call>(); op && op->is(IntrinsicId::kIfThenElse))
      found = {downcast<ExprNode>(node), op->arg(0), op->arg(1), op->arg(2)};
    return !found;
  });
  return found;
}

Expr with_side(const Expr& expr, const Choice& choice, const Expr& side) {
  return rewrite(expr, [&](const NodePtr& node) -> std::optional<NodePtr> {
    if (node.same_as(choice.whole)) return side;
    return std::nullopt;
  });
}

// A tree of at most `left` nodes.
bool is_short(const NodePtr& node, int& left) {
  bool fits = --left >= 0;
  if (fits && node.get()->height() > 1)
    each_member(node, [&](const NodePtr& member, FieldRole) {
      if (fits && !member.as<Buffer>()) fits = is_short(member, left);
    });
  return fits;
}

// What holds for every element of a buffer: `condition` with the indices of the element in place of
// `at`.
struct ElementFact {
  const Node* buffer;
  std::vector<Ref<Var>> at;
  Expr condition;
};

class AccessProver {
 public:
  AccessProver(const PrimFunc& function, const std::function<void(const AccessCheck&)>& see)
      : function_(function), see_(see) {
    for (const Ref<Var>& symbol : symbolic_vars(function)) {
      analyzer_.bind_lower(symbol, 0);
      symbols_.push_back(symbol);
    }
    for (const Ref<Buffer>& buffer : function.buffers) {
      if (!buffer) continue;
      for (const Expr& dim : buffer->shape)
        if (!as_int(dim) && !dim.as<Var>()) analyzer_.assume(dim >= imm(dim->dtype, int64_t{0}));
    }
    find_views();
  }

  void run() { stmt(function_.body); }

 private:
  // ---- memory: an element keeps its value until something may write to its buffer

  void find_views() {
    const auto own = [&](const Ref<Buffer>& buffer) {
      root_[buffer.get()] = buffer.get();
      by_data_.emplace(buffer->data.get(), buffer);
      all_.push_back(buffer);
    };
    for (const Ref<Buffer>& buffer : function_.buffers)
      if (buffer) own(buffer);
    walk(function_.body, [&](const NodePtr& node) {
      if (const auto* block = node.as<Block>()) {
        for (const Ref<Buffer>& buffer : block->alloc_buffers) own(buffer);
        for (const MatchBuffer& match : block->match_buffers) {
          root_[match.buffer.get()] = match.source->buffer.get();
          all_.push_back(match.buffer);
        }
      }
      if (const auto* alloc = node.as<AllocBuffer>()) own(alloc->buffer);
      if (const auto* constant = node.as<AllocConst>()) {
        own(constant->buffer);
        constants_[constant->buffer.get()] = constant->data;
      }
      if (const auto* view = node.as<DeclBuffer>()) {
        const auto known = by_data_.find(view->data.get());
        root_[view->buffer.get()] = known == by_data_.end() ? nullptr : known->second.get();
        by_data_.emplace(view->buffer->data.get(), view->buffer);
        all_.push_back(view->buffer);
      }
    });
    for (const Ref<Buffer>& buffer : all_) by_root_[root(buffer.get())].push_back(buffer);
  }

  // Null: memory that anything may be.
  const Node* root(const Node* buffer) const {
    for (int depth = 0; depth < 64; ++depth) {
      const auto known = root_.find(buffer);
      if (known == root_.end() || !known->second) return nullptr;
      if (known->second == buffer) return buffer;
      buffer = known->second;
    }
    return nullptr;
  }

  struct Writes {
    std::unordered_set<const Node*> roots;
    bool anything = false;
  };
  const Writes& writes_of(const Stmt& s) {
    const auto [known, is_new] = writes_.try_emplace(s.get());
    if (!is_new) return known->second;
    Writes out;
    const auto add = [&](const Node* buffer) {
      const Node* memory = root(buffer);
      out.anything = out.anything || !memory;
      out.roots.insert(memory);
    };
    each_effect(s, unknown_callee, [&](const StmtEffect& effect) {
      out.anything |= effect.kind == StmtEffect::Kind::kForeign;
      const bool is_named =
          effect.kind == StmtEffect::Kind::kWrite || effect.kind == StmtEffect::Kind::kArgument;
      if (is_named) add(effect.memory.get());
    });
    return writes_[s.get()] = std::move(out);
  }

  void forget(const Writes& writes) {
    if (writes.roots.empty() && !writes.anything) return;
    const auto renew = [&](const std::vector<Ref<Buffer>>& buffers) {
      for (const Ref<Buffer>& buffer : buffers)
        if (!constants_.count(buffer.get()))
          now_[buffer.get()] = make<Buffer>(buffer->name, buffer->dtype, buffer->shape,
                                            Buffer::Options{}, buffer->origin);
    };
    if (writes.anything) return renew(all_);
    for (const Node* memory : writes.roots)
      if (const auto known = by_root_.find(memory); known != by_root_.end()) renew(known->second);
    if (const auto any = by_root_.find(nullptr); any != by_root_.end()) renew(any->second);
  }
  const Node* version(const Ref<Buffer>& buffer) const {
    const auto known = now_.find(buffer.get());
    return known == now_.end() ? buffer.get() : known->second.get();
  }

  // In terms of loops and of memory as it is now.
  Expr current(const Expr& expr) const { return now_.empty() ? expr : substitute(expr, now_); }

  // From now on `var` is `value`. What would grow too long stays a variable with its bounds.
  void define(const Ref<Var>& var, const Expr& value) {
    now_.erase(var.get());
    const Expr full = current(value);
    if (int left = kMostNodes; is_short(full, left)) {
      now_[var.get()] = full;
    } else if (var->dtype.is_scalar() && var->dtype.is_integer()) {
      analyzer_.bind_bounds(var, analyzer_.const_bound(full));
    }
  }

  // ---- facts

  // While `body` runs, `condition` holds.
  template <typename F>
  void where(const Expr& condition, const F& body) {
    const size_t guards = guards_.size();
    {
      const auto scope = analyzer_.enter();
      hold(condition);
      body();
    }
    guards_.resize(guards);
  }
  void hold(const Expr& condition) {
    for (const Expr& part : conjuncts(condition)) {
      if (is_int(part, 1)) continue;
      const Expr fact = current(part);
      assume_loads(fact);
      guards_.push_back(fact);
      if (fact->dtype.is_scalar()) analyzer_.assume(fact);
    }
  }

  // What is known of the elements that `expr` reads.
  void assume_loads(const Expr& expr) {
    if (element_facts_.empty() && constants_.empty()) return;
    walk<BufferLoad>(expr, [&](const BufferLoad& load) {
      if (!load.dtype.is_scalar() || !load.dtype.is_integer()) return;
      for (const ElementFact& fact : element_facts_) {
        if (fact.buffer != load.buffer.get() || fact.at.size() != load.indices.size()) continue;
        Substitution values;
        for (size_t d = 0; d < fact.at.size(); ++d)
          values[fact.at[d].get()] = cast(fact.at[d]->dtype, load.indices[d]);
        analyzer_.assume(values.empty() ? fact.condition : substitute(fact.condition, values));
      }
      const auto constant = constants_.find(load.buffer.get());
      if (constant == constants_.end()) return;
      const auto [least, greatest] = range_of(constant->first, *constant->second);
      if (least > greatest) return;
      const Expr self = ref_to(&load);
      analyzer_.assume(self >= imm(load.dtype, least));
      analyzer_.assume(self <= imm(load.dtype, greatest));
    });
  }
  std::pair<int64_t, int64_t> range_of(const Node* buffer, const TensorData& data) {
    const auto [known, is_new] = ranges_.try_emplace(buffer, int64_t{1}, int64_t{0});
    if (!is_new || data.dtype.lanes != 1 || data.elements() == 0 ||
        data.elements() > (int64_t{1} << 22))
      return known->second;
    int64_t least = data.at_int(0), greatest = least;
    for (int64_t i = 1; i < data.elements(); ++i) {
      const int64_t value = data.at_int(i);
      least = std::min(least, value);
      greatest = std::max(greatest, value);
    }
    return known->second = {least, greatest};
  }

  // A nest of loops that asserts something of each element of a buffer.
  void note_assertion(const Stmt& s) {
    std::vector<const For*> loops;
    Substitution axes;
    Stmt inner = s;
    const Assert* claim = nullptr;
    while (!claim) {
      if (const auto* loop = inner.as<For>()) {
        if (!is_int(loop->min, 0)) return;
        loops.push_back(loop);
        inner = loop->body;
      } else if (const auto* realize = inner.as<BlockRealize>()) {
        const Block& block = *realize->block;
        if (!is_int(realize->predicate, 1) || block.init || !block.match_buffers.empty()) return;
        for (size_t i = 0; i < block.iter_vars.size(); ++i)
          axes[block.iter_vars[i].var.get()] =
              axes.empty() ? realize->iter_values[i] : substitute(realize->iter_values[i], axes);
        inner = block.body;
      } else {
        claim = inner.as<Assert>();
        if (!claim) return;
      }
    }
    if (!writes_of(s).roots.empty()) return;
    const Expr condition =
        current(axes.empty() ? claim->condition : substitute(claim->condition, axes));
    std::vector<Ref<BufferLoad>> loads;
    walk<BufferLoad>(condition, [&](const BufferLoad& load) {
      if (std::none_of(loads.begin(), loads.end(), [&](const Ref<BufferLoad>& other) {
            return structural_equal(other, ref_to(&load));
          }))
        loads.push_back(ref_to(&load));
    });
    if (loads.empty()) {
      // Of no element: it holds from here on, where it was asserted at all.
      for (const For* loop : loops) {
        const auto extent = as_int(loop->extent);
        if (!extent || *extent < 1 || uses_var(condition, loop->loop_var.get())) return;
      }
      return hold(condition);
    }
    if (loads.size() != 1) return;
    ElementFact fact{loads[0]->buffer.get(), {}, condition};
    for (size_t d = 0; d < loads[0]->indices.size(); ++d) {
      const auto loop = std::find_if(loops.begin(), loops.end(), [&](const For* one) {
        return loads[0]->indices[d].same_as(one->loop_var);
      });
      const Expr& dim = loads[0]->buffer->shape[d];
      if (loop == loops.end()) {
        // A dimension of one element may be left out.
        if (!is_int(dim, 1) || !is_int(loads[0]->indices[d], 0)) return;
        fact.at.push_back(var("_", loads[0]->indices[d]->dtype));
        continue;
      }
      if (!analyzer_.proves_equal(current((*loop)->extent), dim)) return;
      fact.at.push_back((*loop)->loop_var);
      loops.erase(loop);
    }
    element_facts_.push_back(std::move(fact));
  }

  // ---- proofs

  // a <= b
  bool at_most(const Expr& a, const Expr& b, int cases = 0) {
    if (analyzer_.proves_less_equal(a, b)) return true;
    const Expr gap = cast(kInt64, b) - cast(kInt64, a);
    const arith::Interval range = arith::evaluate(analyzer_, gap, domain_);
    if (range.min && analyzer_.proves_nonnegative(range.min)) return true;
    const auto choice = cases < kMaxCases ? choice_in(gap) : std::nullopt;
    if (!choice) return false;
    for (const bool holds : {true, false}) {
      const auto scope =
          analyzer_.enter(holds ? choice->condition : logical_not(choice->condition));
      assume_loads(choice->condition);
      const Expr side = with_side(gap, *choice, holds ? choice->a : choice->b);
      if (!at_most(int64(0), side, cases + 1)) return false;
    }
    return true;
  }

  bool inside(const AccessCheck& check) {
    const auto scope = analyzer_.enter();
    assume_loads(check.index);
    if (check.kind == Kind::kDivisor)
      return at_most(int64(1), check.index) || at_most(check.index, int64(-1));
    if (check.kind == Kind::kView) return at_most(check.index, check.extent);
    const Expr zero = int64(0);
    if (!at_most(zero, check.index)) return false;
    if (check.kind == Kind::kPointer && !at_most(zero, check.length)) return false;
    if (check.length) return at_most(check.index + check.length, check.extent);
    return at_most(check.index + 1, check.extent);
  }

  // A product of 32 bits that is known to leave them; larger ones than are known are not thought
  // of.
  bool may_wrap(const Expr& index) {
    if (index->height() < 3 || index->dtype.bits != 32) return false;
    bool wraps = false;
    walk_if(index, [&](const NodePtr& node) {
      if (node.as<BufferLoad>()) return false;
      const auto* op = node.as<Binary>();
      if (!op || op->op != BinaryOp::kMul || op->dtype != kInt32) return true;
      const arith::ConstBound a = analyzer_.const_bound(op->lhs),
                              b = analyzer_.const_bound(op->rhs);
      if (!a.has_min() || !a.has_max() || !b.has_min() || !b.has_max()) return true;
      const auto magnitude = [](const arith::ConstBound& range) {
        return std::max(std::abs(static_cast<double>(range.min)),
                        std::abs(static_cast<double>(range.max)));
      };
      // A load of 32 bits may be anything; that its products fit is the program's word.
      const bool known = magnitude(a) < 2147483647.0 && magnitude(b) < 2147483647.0;
      wraps = wraps || (known && magnitude(a) * magnitude(b) > 2147483647.0);
      return true;
    });
    return wraps;
  }

  void judge(AccessCheck check) {
    const Expr index = check.index;
    const auto number = as_int(index), extent = as_int(check.extent ? check.extent : int64(0));
    if (number) {
      const auto length = check.length ? as_int(check.length) : std::optional<int64_t>(1);
      if (check.kind == Kind::kDivisor ? *number != 0
          : check.kind == Kind::kView  ? extent && *number <= *extent
                                       : *number >= 0 && extent && length && *length >= 0 &&
                                            *length <= *extent && *number <= *extent - *length)
        return;
    }
    AccessCheck full = check;
    full.index = current(index);
    if (check.length) full.length = current(check.length);
    if (check.extent) full.extent = current(check.extent);
    if (!may_wrap(full.index) && inside(full)) return;
    switch (search_.decide(full, check.index, loops_, guards_, symbols_, now_)) {
      case Search::Answer::kInside: return;
      case Search::Answer::kOutside:
        check.fails = true;
        check.value = search_.value();
        check.extent_value = search_.extent();
        check.iteration = search_.iteration();
        break;
      case Search::Answer::kOpen: break;
    }
    see_(check);
  }

  // One scalar index, or each lane of a vector of them.
  void index(const Ref<Buffer>& buffer, size_t d, const Expr& at, const NodePtr& node,
             const Origin& origin) {
    AccessCheck check{.kind = Kind::kIndex,
                      .node = node,
                      .buffer = buffer,
                      .dim = d,
                      .index = at,
                      .extent = buffer->shape[d],
                      .origin = origin};
    if (const auto* splat = at.as<Broadcast>()) {
      check.index = splat->value;
    } else if (const auto* ramp = at.as<Ramp>()) {
      check.index = ramp->base;
      judge(check);
      check.index = ramp->base + ramp->stride * (ramp->lanes - 1);
    } else if (at->dtype.is_vector()) {
      return see_(check);
    }
    judge(check);
  }

  // ---- expressions

  void access(const Ref<Buffer>& buffer, const std::vector<Expr>& indices, const NodePtr& node,
              const Origin& origin) {
    for (const Expr& at : indices) expr(at, origin);
    if (indices.size() != buffer->ndim()) return;  // an error of its own
    for (size_t d = 0; d < indices.size(); ++d) index(buffer, d, indices[d], node, origin);
  }

  void expr(const NodePtr& node, const Origin& outer) {
    if (!node || node.as<Var>() || node.as<IntImm>() || node.as<FloatImm>() || node.as<Buffer>())
      return;
    const Origin& origin = node.get()->origin ? node.get()->origin : outer;
    if (const auto* load = node.as<BufferLoad>())
      return access(load->buffer, load->indices, node, origin);
    if (const auto* let = node.as<Let>()) {
      expr(let->value, origin);
      define(let->var, let->value);
      return expr(let->body, origin);
    }
    if (const auto* op = node.as<Binary>()) return binary(*op, node, origin);
    if (const auto* call = node.as<Call>()) return this->call(*call, node, origin);
    if (const auto* region = node.as<BufferRegion>()) return this->region(*region, node, origin);
    each_member(node, [&](const NodePtr& member, FieldRole) { expr(member, origin); });
  }

  void binary(const Binary& op, const NodePtr& node, const Origin& origin) {
    expr(op.lhs, origin);
    if (is_logical(op.op) && op.dtype.is_scalar()) {
      where(op.op == BinaryOp::kAnd ? op.lhs : logical_not(op.lhs), [&] { expr(op.rhs, origin); });
      return;
    }
    expr(op.rhs, origin);
    const bool divides = op.op >= BinaryOp::kDiv && op.op <= BinaryOp::kFloorMod;
    if (divides && op.dtype.is_integer() && op.dtype.is_scalar())
      judge({.kind = Kind::kDivisor, .node = node, .index = op.rhs, .origin = origin});
  }

  void call(const Call& call, const NodePtr& node, const Origin& origin) {
    if (call.is(IntrinsicId::kIfThenElse) && call.arg(0)->dtype.is_scalar()) {
      expr(call.args[0], origin);
      where(call.arg(0), [&] { expr(call.args[1], origin); });
      where(logical_not(call.arg(0)), [&] { expr(call.args[2], origin); });
      return;
    }
    if (call.is(IntrinsicId::kMaskedLoad) || call.is(IntrinsicId::kMaskedStore)) {
      for (size_t i = 1; i < call.args.size(); ++i) expr(call.args[i], origin);
      if (const auto* element = call.args[0].as<BufferLoad>())
        masked(*element, call.arg(1), origin);
      return;
    }
    // A hint names an element without an access. The address of one is for whoever follows it.
    for (size_t i = 0; i < call.args.size(); ++i) {
      const auto* element = call.args[i].as<BufferLoad>();
      if (call.is(IntrinsicId::kPrefetch) && i == 0 && element) {
        for (const Expr& at : element->indices) expr(at, origin);
      } else {
        expr(call.args[i], origin);
      }
    }
    if (call.is(IntrinsicId::kTvmAccessPtr)) return pointer(call, node, origin);
    if (is_foreign(call)) given(call, node, origin);
    const bool shifts = call.is(IntrinsicId::kShiftLeft) || call.is(IntrinsicId::kShiftRight);
    if (shifts && call.dtype.is_scalar()) {
      // 2 is no number of 2 bits.
      const Expr count =
          call.arg(1)->dtype == kInt2 ? cast(kInt64, call.arg(1)) : Expr(call.arg(1));
      judge({.kind = Kind::kShift,
             .node = node,
             .index = count,
             .extent = imm(count->dtype, int64_t{call.dtype.bits}),
             .origin = origin});
    }
  }

  // A pointer with the number of elements behind it.
  void pointer(const Call& call, const NodePtr& node, const Origin& origin) {
    const auto known = by_data_.find(call.args[1].get());
    const int64_t own = element_of_access_ptr(call).bytes();
    if (known == by_data_.end()) return;
    const Buffer& source = *known->second;
    Expr elements = span_of(source);
    if (own != source.dtype.bytes())
      elements = floordiv(elements * source.dtype.bytes(), int64(own));
    judge({.kind = Kind::kPointer,
           .node = node,
           .buffer = known->second,
           .index = cast(kInt64, call.arg(2)),
           .length = cast(kInt64, call.arg(3)),
           .extent = elements,
           .origin = origin});
  }
  static bool is_foreign(const Call& call) {
    return call.is(IntrinsicId::kCallExtern) || call.is(IntrinsicId::kCallPureExtern) ||
           call.is(IntrinsicId::kCallPacked) || call.is(IntrinsicId::kCallCpacked);
  }

  // What a C function takes of a pointer that has no end is its own affair: it is told, not judged.
  void given(const Call& call, const NodePtr& node, const Origin& origin) {
    for (size_t i = 1; i < call.args.size(); ++i) {
      const auto* var = call.args[i].as<Var>();
      const auto* pointer = call.args[i].as<Call>();
      const bool is_element = pointer && pointer->is(IntrinsicId::kAddressOf);
      if (!is_element && !(var && var->dtype.is_handle())) continue;
      AccessCheck told{.kind = Kind::kWhole, .node = node, .origin = origin};
      if (is_element) {
        if (const auto* element = pointer->args[0].as<BufferLoad>()) told.buffer = element->buffer;
      } else if (const auto known = by_data_.find(var); known != by_data_.end()) {
        told.buffer = known->second;
      }
      if (!told.buffer) told.index = call.arg(i);
      see_(told);
    }
  }

  // Lanes where the mask holds.
  void masked(const BufferLoad& element, const Expr& mask, const Origin& origin) {
    for (const Expr& at : element.indices) expr(at, origin);
    if (element.indices.size() != element.buffer->ndim()) return;
    for (size_t d = 0; d < element.indices.size(); ++d) {
      const Expr& at = element.indices[d];
      for (int64_t lane = 0; lane < at->dtype.lanes; ++lane) {
        const Expr index = lane_of(at, lane);
        const Expr holds = mask->dtype.lanes == at->dtype.lanes ? lane_of(mask, lane) : Expr();
        AccessCheck check{.kind = Kind::kIndex,
                          .node = ref_to(&element),
                          .buffer = element.buffer,
                          .dim = d,
                          .index = index ? index : at,
                          .extent = element.buffer->shape[d],
                          .origin = element.origin ? element.origin : origin,
                          .masked = true};
        if (!index) {
          see_(check);
          break;
        }
        // Unknown: it may hold.
        where(holds ? holds : boolean(true), [&] {
          if (!holds) guards_.push_back(mask);
          judge(check);
        });
      }
    }
  }

  void region(const BufferRegion& region, const NodePtr& node, const Origin& outer) {
    const Origin& origin = region.origin ? region.origin : outer;
    for (size_t d = 0; d < region.region.size(); ++d) {
      const Range& range = region.region[d];
      expr(range.min, origin);
      expr(range.extent, origin);
      judge({.kind = Kind::kRegion,
             .node = node,
             .buffer = region.buffer,
             .dim = d,
             .index = range.min,
             .length = range.extent,
             .extent = region.buffer->shape[d],
             .origin = origin});
    }
  }

  // ---- statements

  void stmt(const Stmt& s) {
    if (!s) return;
    const Origin& origin = s->origin;
    if (const auto* list = s.as<Seq>()) {
      const auto scope = analyzer_.enter();
      const size_t guards = guards_.size(), facts = element_facts_.size();
      for (const Stmt& item : list->stmts) {
        stmt(item);
        if (const auto* claim = item.as<Assert>())
          hold(claim->condition);
        else
          note_assertion(item);
      }
      element_facts_.resize(facts);
      guards_.resize(guards);
      return;
    }
    if (const auto* loop = s.as<For>()) return this->loop(*loop);
    if (const auto* branch = s.as<IfThenElse>()) {
      expr(branch->condition, origin);
      const Expr condition = current(branch->condition);  // as it was before either side ran
      where(condition, [&] { stmt(branch->then_case); });
      if (branch->else_case) where(logical_not(condition), [&] { stmt(branch->else_case); });
      return;
    }
    if (const auto* loop = s.as<While>()) {
      forget(writes_of(s));
      expr(loop->condition, origin);
      where(loop->condition, [&] { stmt(loop->body); });
      forget(writes_of(s));
      return;
    }
    if (const auto* attr = s.as<AttrStmt>()) return stmt(attr->body);
    if (const auto* realize = s.as<BlockRealize>()) return block(*realize);
    if (const auto* bind = s.as<Bind>()) {
      expr(bind->value, origin);
      define(bind->var, bind->value);
      return;
    }
    if (const auto* store = s.as<BufferStore>()) {
      expr(store->value, origin);
      access(store->buffer, store->indices, s, origin);
    } else if (const auto* view = s.as<DeclBuffer>()) {
      declared(*view, s);
    } else if (const auto* evaluate = s.as<Evaluate>()) {
      expr(evaluate->value, origin);
    } else if (const auto* claim = s.as<Assert>()) {
      expr(claim->condition, origin);
    } else if (const auto* call = s.as<CallTir>()) {
      for (const NodePtr& arg : call->args) expr(arg, origin);
    }
    forget(writes_of(s));
  }

  // A loop that runs says that no factor of its extent is 0.
  void assume_sizes(const Expr& extent) {
    if (as_int(extent)) return;
    walk<Var>(extent, [&](const Var& var) {
      const Expr zero = imm(var.dtype, int64_t{0});
      if (!var.is_size || !var.dtype.is_int()) return;
      const Expr without = substitute(extent, Substitution{{&var, zero}});
      if (analyzer_.proves(without <= imm(without->dtype, int64_t{0})))
        analyzer_.assume(ref_to(&var) > zero);
    });
  }

  void loop(const For& loop) {
    expr(loop.min, loop.origin);
    expr(loop.extent, loop.origin);
    const Expr min = current(loop.min), extent = current(loop.extent);
    const Stmt self = ref_to(&loop);
    forget(writes_of(self));
    now_.erase(loop.loop_var.get());
    {
      const auto scope = analyzer_.enter();
      assume_loads(min);
      assume_loads(extent);
      analyzer_.bind(loop.loop_var, min, extent);
      assume_sizes(extent);
      domain_[loop.loop_var.get()] = arith::Interval::of(min, extent);
      loops_.push_back({loop.loop_var, min, extent});
      stmt(loop.body);
      loops_.pop_back();
      domain_.erase(loop.loop_var.get());
    }
    forget(writes_of(self));
  }

  // A view of the memory of a buffer of this function, from its beginning or from an element on,
  // ends where that does. What other pointers point to is not known.
  void declared(const DeclBuffer& view, const NodePtr& node) {
    const Buffer& shown = *view.buffer;
    const auto* address = view.data.as<Call>();
    const auto* element = address && address->is(IntrinsicId::kAddressOf)
                              ? address->args[0].as<BufferLoad>()
                              : nullptr;
    // Behind the last element there is room for no elements.
    const auto count = as_int(element_count(shown.shape));
    if (!element || count != 0) expr(view.data, view.origin);
    const auto known = by_data_.find(view.data.get());
    const auto defines = [](const Expr& expr) { return expr && expr.as<Var>(); };
    if ((!element && known == by_data_.end()) || defines(shown.elem_offset) ||
        std::any_of(shown.strides.begin(), shown.strides.end(), defines))
      return;
    const Buffer& source = element ? *element->buffer : *known->second;
    const int64_t own = shown.dtype.bytes(), other = source.dtype.bytes();
    Expr end = span_of(shown), most = span_of(source);
    if (element) {
      if (element->indices.size() != source.ndim()) return;  // an error of its own
      most = most - place_of(*element);
    }
    if (own != other) {
      end = end * own;
      most = most * other;
    }
    judge({.kind = Kind::kView,
           .node = node,
           .buffer = view.buffer,
           .index = end,
           .extent = most,
           .origin = view.origin ? view.origin : view.buffer->origin});
  }

  // A view of a block takes no more of each dimension than its region has.
  void shows(const MatchBuffer& match, const Origin& origin) {
    region(*match.source, match.source, origin);
    const BufferRegion& source = *match.source;
    std::vector<Expr> extents;
    for (size_t d = 0; d < source.region.size(); ++d)
      if (!source.drops(d)) extents.push_back(source.region[d].extent);
    const size_t ndim = match.buffer->ndim();
    if (extents.size() < ndim) return;  // an error of its own
    extents.erase(extents.begin(), extents.end() - static_cast<std::ptrdiff_t>(ndim));
    for (size_t d = 0; d < ndim; ++d) {
      const Expr& dim = match.buffer->shape[d];
      if (const auto symbol = cast<Var>(dim);
          symbol && !now_.count(dim.get()) && !is_known(symbol)) {
        define(symbol, cast(symbol->dtype, extents[d]));
        continue;
      }
      judge({.kind = Kind::kView,
             .node = match.buffer,
             .buffer = match.buffer,
             .dim = d,
             .index = dim,
             .extent = extents[d],
             .origin = match.buffer->origin ? match.buffer->origin : origin});
    }
  }
  bool is_known(const Ref<Var>& var) const {
    const auto same = [&](const auto& other) { return other.same_as(var); };
    return std::any_of(symbols_.begin(), symbols_.end(), same) ||
           std::any_of(function_.params.begin(), function_.params.end(), same) ||
           std::any_of(loops_.begin(), loops_.end(),
                       [&](const Running& loop) { return loop.var.same_as(var); });
  }

  void block(const BlockRealize& realize) {
    const Block& block = *realize.block;
    for (const Expr& value : realize.iter_values) expr(value, realize.origin);
    expr(realize.predicate, realize.origin);
    where(realize.predicate, [&] {
      for (size_t i = 0; i < block.iter_vars.size(); ++i)
        define(block.iter_vars[i].var, realize.iter_values[i]);
      for (const MatchBuffer& match : block.match_buffers) shows(match, block.origin);
      if (block.init) where(first_iteration(block), [&] { stmt(block.init); });
      stmt(block.body);
    });
  }

  const PrimFunc& function_;
  const std::function<void(const AccessCheck&)>& see_;
  arith::Analyzer analyzer_;
  arith::Domain domain_;
  Search search_;
  std::vector<Ref<Var>> symbols_;
  std::vector<Running> loops_;
  std::vector<Expr> guards_;
  std::vector<ElementFact> element_facts_;
  Substitution now_;  // axes and bound variables by their values; buffers since they were written
  std::vector<Ref<Buffer>> all_;
  std::unordered_map<const Node*, std::vector<Ref<Buffer>>> by_root_;  // all_, by root()
  std::unordered_map<const Node*, Ref<Buffer>> by_data_;               // by their pointers
  std::unordered_map<const Node*, const Node*> root_;  // the memory that a view is of
  std::unordered_map<const Node*, Ref<TensorData>> constants_;
  std::unordered_map<const Node*, std::pair<int64_t, int64_t>> ranges_;
  std::unordered_map<const Node*, Writes> writes_;
};

}  // namespace

void find_unproved(const PrimFunc& function, const std::function<void(const AccessCheck&)>& see) {
  AccessProver(function, see).run();
}

}  // namespace tenon::tir
