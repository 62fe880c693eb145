#include "tenon/tir/analysis/region.h"

#include <algorithm>

namespace tenon::tir {

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

class AccessFinder {
 public:
  void statement(const Stmt& stmt) {
    if (!stmt) return;
    if (const auto* loop = stmt.as<For>()) {
      reads_of(loop->min);
      reads_of(loop->extent);
      // The loop's bounds in terms of what runs around it.
      const auto low = value_range(loop->min, running_, analyzer_);
      const auto high = value_range(loop->min + loop->extent - 1, running_, analyzer_);
      if (low && high)
        running_[loop->loop_var.get()] = {low->min, analyzer_.simplify(high->max - low->min + 1)};
      else
        opaque_vars_.push_back(loop->loop_var);
      analyzer_.bind(loop->loop_var, loop->min, loop->extent);
      statement(loop->body);
      return;
    }
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
      statement(branch->then_case);
      statement(branch->else_case);
      return;
    }
    // What is not a plain statement: every buffer in it is read, and written where a call could.
    if (const auto* call = stmt.as<CallTir>()) {
      for (const NodePtr& arg : call->args) {
        if (const auto* region = arg.as<BufferRegion>()) {
          merge(ref_to(region), reads_);
          merge(ref_to(region), writes_);
        }
      }
      return;
    }
    if (const auto* attr = stmt.as<AttrStmt>()) return statement(attr->body);
    if (const auto* loop = stmt.as<While>()) {
      reads_of(loop->condition);
      return statement(loop->body);
    }
    if (const auto* evaluate = stmt.as<Evaluate>()) return reads_of(evaluate->value);
    if (const auto* bind = stmt.as<Bind>()) {
      opaque_vars_.push_back(bind->var);
      return reads_of(bind->value);
    }
    if (const auto* claim = stmt.as<Assert>()) return reads_of(claim->condition);
    walk<BufferLoad>(
        stmt, [&](const BufferLoad& load) { merge(BufferRegion::whole(load.buffer), reads_); });
    walk<BufferStore>(
        stmt, [&](const BufferStore& store) { merge(BufferRegion::whole(store.buffer), writes_); });
  }

  Accesses result() { return {std::move(reads_), std::move(writes_)}; }

 private:
  void reads_of(const Expr& expr) {
    walk<BufferLoad>(expr,
                     [&](const BufferLoad& load) { access(load.buffer, load.indices, reads_); });
    walk<BufferRegion>(expr, [&](const BufferRegion& region) {
      merge(BufferRegion::whole(region.buffer), reads_);
    });
    walk<Let>(expr, [&](const Let& let) { opaque_vars_.push_back(let.var); });
  }

  void access(const Ref<Buffer>& buffer, const std::vector<Expr>& indices,
              std::vector<Ref<BufferRegion>>& list) {
    std::vector<Range> box;
    for (size_t i = 0; i < indices.size(); ++i) {
      const Expr& dim = buffer->shape[i];
      Expr index = indices[i];
      const Range whole{imm(dim->dtype, int64_t{0}), dim};
      bool known = index->dtype.is_scalar();
      for (const Ref<Var>& var : opaque_vars_) known = known && !uses_var(index, var.get());
      // An index that is itself loaded can be anything.
      walk<BufferLoad>(index, [&](const BufferLoad&) { known = false; });
      if (!known) {
        box.push_back(whole);
        continue;
      }
      if (running_.empty()) {
        box.push_back({index, imm(index->dtype, int64_t{1})});
        continue;
      }
      const auto range = value_range(index, running_, analyzer_);
      if (range)
        box.push_back({range->min, analyzer_.simplify(range->max - range->min + 1)});
      else
        box.push_back(whole);
    }
    merge(make<BufferRegion>(buffer, std::move(box)), list);
  }

  void merge(const Ref<BufferRegion>& region, std::vector<Ref<BufferRegion>>& list) {
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

  arith::Analyzer analyzer_;
  VarRanges running_;
  std::vector<Ref<Var>> opaque_vars_;
  std::vector<Ref<BufferRegion>> reads_, writes_;
};

}  // namespace

Accesses find_accesses(const Stmt& stmt) {
  AccessFinder finder;
  finder.statement(stmt);
  return finder.result();
}

Ref<Block> with_accesses(const Ref<Block>& block) {
  AccessFinder finder;
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

}  // namespace tenon::tir
