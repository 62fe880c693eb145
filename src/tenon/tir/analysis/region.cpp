// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_set>

#include "tenon/tir/analysis/call_accesses.h"

namespace tenon::tir {

static void collect_conjuncts(const Expr& condition, std::vector<Expr>& out) {
  const auto* both = condition.as<Binary>();
  if (both && both->op == BinaryOp::kAnd) {
    collect_conjuncts(both->lhs, out);
    collect_conjuncts(both->rhs, out);
    return;
  }
  if (const auto* call = condition.as<Call>(); call && call->is(IntrinsicId::kLikely))
    return collect_conjuncts(call->arg(0), out);
  out.push_back(condition);
}

std::vector<Expr> conjuncts(const Expr& condition) {
  std::vector<Expr> out;
  if (condition) collect_conjuncts(condition, out);
  return out;
}

bool uses_var(const NodePtr& node, const Var* var) {
  bool found = false;
  walk_if(node, [&](const NodePtr& n) {
    if (n.get() == var) found = true;
    return !found;
  });
  return found;
}

static bool uses_any(const Expr& expr, const VarRanges& vars) {
  bool found = false;
  walk_if(expr, [&](const NodePtr& n) {
    if (const auto* var = n.as<Var>(); var && vars.count(var)) found = true;
    return !found;
  });
  return found;
}

namespace {

std::optional<ValueRange> range_of(const Expr& expr, const VarRanges& running,
                                   arith::Analyzer& analyzer) {
  if (!uses_any(expr, running)) return ValueRange{expr, expr};
  if (const auto* var = expr.as<Var>()) {
    const Range& range = running.at(var);
    return ValueRange{range.min, range.min + range.extent - 1};
  }
  if (const auto* conversion = expr.as<Cast>()) {
    if (!expr->dtype.is_int() || !conversion->value->dtype.is_int()) return std::nullopt;
    auto inner = range_of(conversion->value, running, analyzer);
    if (!inner) return std::nullopt;
    return ValueRange{cast(expr->dtype, inner->min), cast(expr->dtype, inner->max)};
  }
  const auto* op = expr.as<Binary>();
  if (!op || !expr->dtype.is_integer()) return std::nullopt;
  const auto a = range_of(op->lhs, running, analyzer);
  const auto b = range_of(op->rhs, running, analyzer);
  if (!a || !b) return std::nullopt;
  switch (op->op) {
    case BinaryOp::kAdd: return ValueRange{a->min + b->min, a->max + b->max};
    case BinaryOp::kSub: return ValueRange{a->min - b->max, a->max - b->min};
    case BinaryOp::kMin: return ValueRange{min(a->min, b->min), min(a->max, b->max)};
    case BinaryOp::kMax: return ValueRange{max(a->min, b->min), max(a->max, b->max)};
    case BinaryOp::kMul: {
      const ValueRange* varying = &*a;
      const ValueRange* factor = &*b;
      if (!factor->min.same_as(factor->max)) std::swap(varying, factor);
      if (!factor->min.same_as(factor->max)) return std::nullopt;
      if (analyzer.proves_nonnegative(factor->min))
        return ValueRange{varying->min * factor->min, varying->max * factor->min};
      if (analyzer.proves_less_equal(factor->min, imm(factor->min->dtype, int64_t{0})))
        return ValueRange{varying->max * factor->min, varying->min * factor->min};
      return std::nullopt;
    }
    case BinaryOp::kFloorDiv:
      if (!b->min.same_as(b->max) || !analyzer.proves_positive(b->min)) return std::nullopt;
      return ValueRange{floordiv(a->min, b->min), floordiv(a->max, b->min)};
    case BinaryOp::kFloorMod: {
      if (!b->min.same_as(b->max) || !analyzer.proves_positive(b->min)) return std::nullopt;
      if (analyzer.proves_equal(floordiv(a->min, b->min), floordiv(a->max, b->min)))
        return ValueRange{floormod(a->min, b->min), floormod(a->max, b->min)};
      return ValueRange{imm(expr->dtype, int64_t{0}), b->min - 1};
    }
    default: return std::nullopt;
  }
}

}  // namespace

std::optional<ValueRange> value_range(const Expr& expr, const VarRanges& running,
                                      arith::Analyzer& analyzer) {
  if (!uses_any(expr, running)) return ValueRange{expr, expr};
  // In canonical form each variable of a linear sum stands once, so that the range is exact.
  auto range = range_of(analyzer.simplify(expr), running, analyzer);
  if (!range) return std::nullopt;
  return ValueRange{analyzer.simplify(range->min), analyzer.simplify(range->max)};
}

std::vector<Range> relaxed(const BufferRegion& region, const VarRanges& running,
                           arith::Analyzer& analyzer) {
  std::vector<Range> out;
  for (size_t i = 0; i < region.region.size(); ++i) {
    const Range& range = region.region[i];
    const auto low = value_range(range.min, running, analyzer);
    const auto high = is_int(range.extent, 1)
                          ? low
                          : value_range(range.min + range.extent - 1, running, analyzer);
    if (low && high) {
      out.push_back({low->min, analyzer.simplify(high->max - low->min + 1)});
    } else {
      const Expr& dim = region.buffer->shape[i];
      out.push_back({imm(dim->dtype, int64_t{0}), dim});
    }
  }
  return out;
}

std::vector<Range> hull(const std::vector<Range>& a, const std::vector<Range>& b,
                        arith::Analyzer& analyzer) {
  std::vector<Range> out;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].min.same_as(b[i].min) && a[i].extent.same_as(b[i].extent)) {
      out.push_back(a[i]);
      continue;
    }
    const Expr low = analyzer.simplify(min(a[i].min, b[i].min));
    const Expr high = analyzer.simplify(max(a[i].min + a[i].extent, b[i].min + b[i].extent));
    out.push_back({low, analyzer.simplify(high - low)});
  }
  return out;
}

namespace {

// `lhs op rhs` as bounds of one running variable, which stands in it with factor 1 or -1.
struct Bound {
  const Var* var = nullptr;
  Expr least, greatest;  // one of them; inclusive
};

std::optional<Bound> bound_from(const Expr& condition, const VarRanges& running,
                                arith::Analyzer& analyzer) {
  const auto* test = condition.as<Binary>();
  if (!test || !is_comparison(test->op) || !test->lhs->dtype.is_int()) return std::nullopt;
  const bool less = test->op == BinaryOp::kLT || test->op == BinaryOp::kLE;
  if (!less && test->op != BinaryOp::kGT && test->op != BinaryOp::kGE) return std::nullopt;
  const bool strict = test->op == BinaryOp::kLT || test->op == BinaryOp::kGT;
  // difference <= 0
  Expr difference = less ? test->lhs - test->rhs : test->rhs - test->lhs;
  if (strict) difference = difference + 1;
  const Var* found = nullptr;
  int found_vars = 0;
  walk(difference, [&](const NodePtr& node) {
    const auto* var = node.as<Var>();
    if (!var || running.count(var) == 0) return;
    found = var;
    ++found_vars;
  });
  if (!found || found->dtype != difference->dtype) return std::nullopt;
  const Expr var = ref_to(found);
  const Expr above = analyzer.simplify(difference - var);  // var + above <= 0
  if (!uses_any(above, running))
    return Bound{found, {}, analyzer.simplify(imm(above->dtype, int64_t{0}) - above)};
  const Expr below = analyzer.simplify(difference + var);  // below - var <= 0
  if (!uses_any(below, running)) return Bound{found, below, {}};
  return std::nullopt;
}

// What holds where `condition` does not; nothing where it is no comparison.
Expr negation(const Expr& condition) {
  const auto* test = condition.as<Binary>();
  if (!test) return {};
  switch (test->op) {
    case BinaryOp::kLT: return binary(BinaryOp::kGE, test->lhs, test->rhs);
    case BinaryOp::kLE: return binary(BinaryOp::kGT, test->lhs, test->rhs);
    case BinaryOp::kGT: return binary(BinaryOp::kLE, test->lhs, test->rhs);
    case BinaryOp::kGE: return binary(BinaryOp::kLT, test->lhs, test->rhs);
    default: return {};
  }
}

class AccessFinder {
 public:
  explicit AccessFinder(CalleeEffects calls) : calls_(std::move(calls)) {}

  void statement(const Stmt& stmt) {
    if (!stmt) return;
    if (const auto* loop = stmt.as<For>()) {
      reads_of(loop->min);
      reads_of(loop->extent);
      // The loop's bounds in terms of what runs around it.
      const Expr min = substituted(loop->min), extent = substituted(loop->extent);
      const auto low = value_range(min, running_, analyzer_);
      const auto high = value_range(min + extent - 1, running_, analyzer_);
      if (low && high && is_known(low->min) && is_known(high->max))
        running_[loop->loop_var.get()] = {low->min, analyzer_.simplify(high->max - low->min + 1)};
      else
        opaque_vars_.push_back(loop->loop_var);
      analyzer_.bind(loop->loop_var, loop->min, loop->extent);
      statement(loop->body);
      return;
    }
    if (const auto* realize = stmt.as<BlockRealize>()) return nested(*realize);
    if (const auto* list = stmt.as<Seq>()) {
      for (const Stmt& item : list->stmts) statement(item);
      return;
    }
    if (const auto* store = stmt.as<BufferStore>()) {
      reads_of(store->value);
      for (const Expr& index : store->indices) reads_of(index);
      access(store->buffer, store->indices, writes_);
      return;
    }
    if (const auto* branch = stmt.as<IfThenElse>()) {
      reads_of(branch->condition);
      where(branch->condition, [&] { statement(branch->then_case); });
      where(negation(branch->condition), [&] { statement(branch->else_case); });
      return;
    }
    if (const auto* call = stmt.as<CallTir>()) return this->call(*call->callee, call->args);
    if (const auto* attr = stmt.as<AttrStmt>()) return statement(attr->body);
    if (const auto* loop = stmt.as<While>()) {
      reads_of(loop->condition);
      return statement(loop->body);
    }
    if (const auto* evaluate = stmt.as<Evaluate>()) return reads_of(evaluate->value);
    if (const auto* bind = stmt.as<Bind>()) {
      reads_of(bind->value);
      const Expr value = substituted(bind->value);
      if (value->dtype.is_int() && is_known(value))
        bound_[bind->var.get()] = value;
      else
        opaque_vars_.push_back(bind->var);
      return;
    }
    if (const auto* allocation = stmt.as<AllocBuffer>()) return own_.push_back(allocation->buffer);
    if (const auto* constant = stmt.as<AllocConst>()) return own_.push_back(constant->buffer);
    if (const auto* view = stmt.as<DeclBuffer>()) {
      own_.push_back(view->buffer);
      return reads_of(view->data);
    }
    if (const auto* claim = stmt.as<Assert>()) return reads_of(claim->condition);
    walk<BufferLoad>(
        stmt, [&](const BufferLoad& load) { merge(BufferRegion::whole(load.buffer), reads_); });
    walk<BufferStore>(
        stmt, [&](const BufferStore& store) { merge(BufferRegion::whole(store.buffer), writes_); });
  }

  void view(const MatchBuffer& match) { views_.push_back(match); }

  /// States which buffers are written in what is to be looked at.
  void prepare(const Stmt& stmt) {
    each_effect(stmt, calls_, [&](const StmtEffect& effect) {
      if (effect.memory && effect.writes()) written_.insert(effect.memory.get());
    });
  }

  Accesses result() {
    // A buffer of the statement's own is nobody else's business.
    const auto is_own = [&](const Ref<BufferRegion>& region) {
      return std::any_of(own_.begin(), own_.end(),
                         [&](const Ref<Buffer>& b) { return b.same_as(region->buffer); });
    };
    std::erase_if(reads_, is_own);
    std::erase_if(writes_, is_own);
    return {std::move(reads_), std::move(writes_)};
  }

 private:
  void call(const GlobalVar& callee, const std::vector<NodePtr>& args) {
    for (size_t i = 0; i < args.size(); ++i) {
      const auto* region = args[i].as<BufferRegion>();
      if (!region) {
        reads_of(downcast<ExprNode>(args[i]));
        continue;
      }
      const ParamEffect use = calls_(callee.name, i, *region->buffer);
      for (const Range& range : region->region) {
        reads_of(range.min);
        reads_of(range.extent);
      }
      const Ref<BufferRegion> box = covered(*region);
      if (use.reads) merge(box, reads_);
      if (use.writes) merge(box, writes_);
    }
  }

  void reads_of(const Expr& expr) {
    if (!running_.empty() && by_condition(expr)) return;
    walk<Call>(expr, [&](const Call& node) {
      if (node.callee) call(*node.callee, node.args);
    });
    walk<BufferLoad>(expr,
                     [&](const BufferLoad& load) { access(load.buffer, load.indices, reads_); });
    walk<Call>(expr, [&](const Call& node) {
      for (const NodePtr& arg : node.args)
        if (const auto* region = arg.as<BufferRegion>(); region && !node.callee)
          merge(BufferRegion::whole(region->buffer), reads_);
    });
    walk<Let>(expr, [&](const Let& let) { opaque_vars_.push_back(let.var); });
  }

  // Each value of a conditional is read under its condition.
  bool by_condition(const Expr& expr) {
    if (const auto* op = expr.as<Binary>()) {
      reads_of(op->lhs);
      reads_of(op->rhs);
      return true;
    }
    if (const auto* conversion = expr.as<Cast>()) {
      reads_of(conversion->value);
      return true;
    }
    const auto* call = expr.as<Call>();
    if (!call || !call->is(IntrinsicId::kIfThenElse)) return false;
    reads_of(call->arg(0));
    where(call->arg(0), [&] { reads_of(call->arg(1)); });
    where(negation(call->arg(0)), [&] { reads_of(call->arg(2)); });
    return true;
  }

  // Under a condition, which may narrow what runs.
  template <typename F>
  void where(const Expr& condition, const F& inside) {
    VarRanges before;
    for (const Expr& part : conjuncts(condition)) {
      const auto bound = bound_from(substituted(part), running_, analyzer_);
      if (!bound) continue;
      Range& range = running_[bound->var];
      before.emplace(bound->var, range);
      const Expr last = range.min + range.extent - 1;
      // What is not proved to be tighter leaves the range as it is.
      const bool raises = bound->least && analyzer_.proves_less_equal(range.min, bound->least);
      const bool lowers = bound->greatest && analyzer_.proves_less_equal(bound->greatest, last);
      const Expr low = raises ? bound->least : range.min;
      const Expr high = lowers ? bound->greatest : last;
      range = {low, analyzer_.simplify(high - low + 1)};
    }
    inside();
    for (const auto& [var, range] : before) running_[var] = range;
  }

  // What the block states, in terms of what runs around it.
  void nested(const BlockRealize& realize) {
    for (const Expr& value : realize.iter_values) reads_of(value);
    reads_of(realize.predicate);
    const Block& block = *realize.block;
    for (size_t i = 0; i < block.iter_vars.size(); ++i) {
      const Expr value = substituted(realize.iter_values[i]);
      if (is_known(value))
        bound_[block.iter_vars[i].var.get()] = value;
      else
        opaque_vars_.push_back(block.iter_vars[i].var);
    }
    for (const auto& region : block.reads) merge(covered(*region), reads_);
    for (const auto& region : block.writes) merge(covered(*region), writes_);
  }

  Ref<BufferRegion> covered(const BufferRegion& region) {
    std::vector<Range> box;
    for (size_t i = 0; i < region.region.size(); ++i) {
      const Range& range = region.region[i];
      const Expr last = is_int(range.extent, 1) ? range.min : range.min + range.extent - 1;
      box.push_back(between(range.min, last, region.buffer->shape[i]));
    }
    return make<BufferRegion>(ref_to(&region)->buffer, std::move(box));
  }

  Expr substituted(const Expr& expr) { return bound_.empty() ? expr : substitute(expr, bound_); }

  // Whether an expression means the same before the statement as inside of it.
  bool is_known(const Expr& expr) {
    bool known = true;
    for (const Ref<Var>& var : opaque_vars_) known = known && !uses_var(expr, var.get());
    walk<BufferLoad>(expr, [&](const BufferLoad& load) {
      known = known && written_.count(load.buffer.get()) == 0 &&
              written_.count(load.buffer->data.get()) == 0;
    });
    return known;
  }

  // The values from `first` to `last`, both included, while everything runs.
  Range between(Expr first, Expr last, const Expr& dim) {
    const Range whole{imm(dim->dtype, int64_t{0}), dim};
    const bool one = first.same_as(last);
    first = substituted(first);
    last = one ? first : substituted(last);
    if (!is_known(first) || !is_known(last)) return whole;
    if (one && !uses_any(first, running_)) {
      const Expr point = bound_.empty() ? first : analyzer_.simplify(first);
      return {point, imm(first->dtype, int64_t{1})};
    }
    const auto low = value_range(first, running_, analyzer_);
    const auto high = one ? low : value_range(last, running_, analyzer_);
    if (!low || !high) return whole;
    return {low->min, analyzer_.simplify(high->max - low->min + 1)};
  }

  void access(const Ref<Buffer>& buffer, const std::vector<Expr>& indices,
              std::vector<Ref<BufferRegion>>& list) {
    std::vector<Range> box;
    for (size_t i = 0; i < indices.size(); ++i) {
      const Expr& dim = buffer->shape[i];
      const auto* ramp = indices[i].as<Ramp>();
      if (ramp && analyzer_.proves_nonnegative(ramp->stride)) {
        box.push_back(between(ramp->base, ramp->base + ramp->stride * (ramp->lanes - 1), dim));
      } else if (indices[i]->dtype.is_vector()) {
        box.push_back({imm(dim->dtype, int64_t{0}), dim});
      } else {
        box.push_back(between(indices[i], indices[i], dim));
      }
    }
    merge(make<BufferRegion>(buffer, std::move(box)), list);
  }

  void merge(const Ref<BufferRegion>& region, std::vector<Ref<BufferRegion>>& list) {
    for (const MatchBuffer& match : views_) {
      if (!match.buffer.same_as(region->buffer)) continue;
      // What is accessed of the view, where the view lies; leading dimensions it may not have.
      std::vector<Range> box = match.source->region;
      const size_t leading = box.size() - std::min(box.size(), region->region.size());
      for (size_t i = leading; i < box.size(); ++i) {
        const Range& inner = region->region[i - leading];
        box[i] = {analyzer_.simplify(box[i].min + inner.min), inner.extent};
      }
      return merge(make<BufferRegion>(match.source->buffer, std::move(box)), list);
    }
    for (Ref<BufferRegion>& known : list) {
      if (!known->buffer.same_as(region->buffer)) continue;
      bool same = true;
      for (size_t i = 0; i < known->region.size() && same; ++i)
        same = structural_equal(known->region[i].min, region->region[i].min) &&
               structural_equal(known->region[i].extent, region->region[i].extent);
      if (!same)
        known = make<BufferRegion>(region->buffer, hull(known->region, region->region, analyzer_));
      return;
    }
    list.push_back(region);
  }

  CalleeEffects calls_;
  arith::Analyzer analyzer_;
  VarRanges running_;
  std::vector<Ref<Var>> opaque_vars_;
  std::vector<MatchBuffer> views_;
  Substitution bound_;                       // names of values
  std::unordered_set<const Node*> written_;  // somewhere inside
  std::vector<Ref<Buffer>> own_;             // defined inside
  std::vector<Ref<BufferRegion>> reads_, writes_;
};

}  // namespace

static Accesses accesses(const Stmt& stmt, CalleeEffects calls) {
  AccessFinder finder(std::move(calls));
  finder.prepare(stmt);
  finder.statement(stmt);
  return finder.result();
}

Accesses find_accesses(const Stmt& stmt) { return accesses(stmt, unknown_callee); }
Accesses find_accesses(const Stmt& stmt, CallEffects& effects) {
  return accesses(stmt, effects.callees());
}

// Without a module to ask, what the block states tells what the calls in it do.
static CalleeEffects oracle_of(const Block& block) {
  return [&block](const std::string&, size_t, const Buffer& buffer) -> ParamEffect {
    const auto lists = [&](const std::vector<Ref<BufferRegion>>& regions) {
      return std::any_of(regions.begin(), regions.end(), [&](const Ref<BufferRegion>& region) {
        return region->buffer.get() == &buffer;
      });
    };
    const ParamEffect use{lists(block.reads), lists(block.writes)};
    return use.reads || use.writes ? use : ParamEffect{true, true};
  };
}

static Ref<Block> with_accesses(const Ref<Block>& block, CalleeEffects calls) {
  AccessFinder finder(std::move(calls));
  for (const MatchBuffer& match : block->match_buffers) finder.view(match);
  if (block->init) finder.prepare(block->init);
  finder.prepare(block->body);
  if (block->init) finder.statement(block->init);
  finder.statement(block->body);
  Accesses found = finder.result();
  // A buffer of the block's own is nobody else's business.
  const auto own = [&](const Ref<BufferRegion>& region) {
    return std::any_of(block->alloc_buffers.begin(), block->alloc_buffers.end(),
                       [&](const Ref<Buffer>& b) { return b.same_as(region->buffer); });
  };
  std::erase_if(found.reads, own);
  std::erase_if(found.writes, own);
  if (block->init)
    std::erase_if(found.reads, [&](const Ref<BufferRegion>& read) {
      return std::any_of(
          found.writes.begin(), found.writes.end(),
          [&](const Ref<BufferRegion>& write) { return write->buffer.same_as(read->buffer); });
    });
  Block::Parts parts = block->parts();
  parts.reads = std::move(found.reads);
  parts.writes = std::move(found.writes);
  return make<Block>(std::move(parts), block->origin);
}

Ref<Block> with_accesses(const Ref<Block>& block) {
  return with_accesses(block, oracle_of(*block));
}
Ref<Block> with_accesses(const Ref<Block>& block, CallEffects& effects) {
  return with_accesses(block, effects.callees());
}

}  // namespace tenon::tir
