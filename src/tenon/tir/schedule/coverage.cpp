// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/schedule/coverage.h"

#include <algorithm>
#include <set>

#include "tenon/tir/schedule/edit.h"

namespace tenon::tir {

namespace {

using arith::Iterator;

bool uses(const Expr& expr, const std::vector<Ref<Var>>& vars) {
  return std::any_of(vars.begin(), vars.end(),
                     [&](const Ref<Var>& var) { return uses_var(expr, var.get()); });
}

class BoxFinder {
 public:
  BoxFinder(const std::vector<Expr>& indices, const std::vector<Iterator>& loops,
            const std::vector<Ref<Var>>& around, Times times, arith::Analyzer& analyzer)
      : loops_(loops), around_(around), times_(times), analyzer_(analyzer) {
    for (const Iterator& loop : loops) {
      analyzer.bind(loop.var, loop.min, loop.extent);
      vars_.push_back(loop.var);
    }
    for (const Expr& index : indices) {
      indices_.push_back(analyzer.simplify(index));
      std::vector<size_t> used;
      for (size_t l = 0; l < loops.size(); ++l)
        if (uses_var(indices_.back(), vars_[l].get())) used.push_back(l);
      used_.push_back(std::move(used));
    }
    spans_.resize(indices.size());
  }

  std::optional<std::vector<Span>> run(const std::vector<Expr>& conditions) {
    if (!loops_are_plain()) return std::nullopt;
    for (const Expr& condition : conditions)
      if (!take(condition)) return std::nullopt;
    // Dimensions that do not move apart from one another are found together.
    std::set<size_t> together;
    for (size_t d = 0; d < indices_.size(); ++d)
      if (shares_a_loop(d) || is_conditioned(d) || !find_alone(d)) together.insert(d);
    for (bool grows = true; grows;) {
      grows = false;
      for (size_t d = 0; d < indices_.size(); ++d)
        for (const size_t other : together)
          if (!together.count(d) && meet(d, other)) {
            together.insert(d);
            grows = true;
            break;
          }
    }
    if (!find_together(together)) return std::nullopt;
    return spans_;
  }

 private:
  bool is_used(size_t loop) const {
    return std::any_of(used_.begin(), used_.end(), [&](const std::vector<size_t>& used) {
      return std::find(used.begin(), used.end(), loop) != used.end();
    });
  }
  bool meet(size_t d, size_t other) const {
    return std::any_of(used_[d].begin(), used_[d].end(), [&](size_t loop) {
      return std::find(used_[other].begin(), used_[other].end(), loop) != used_[other].end();
    });
  }
  bool shares_a_loop(size_t d) const {
    for (size_t other = 0; other < indices_.size(); ++other)
      if (other != d && meet(d, other)) return true;
    return false;
  }
  bool is_conditioned(size_t d) const {
    return std::any_of(used_[d].begin(), used_[d].end(), [&](size_t loop) {
      return std::any_of(conditions_.begin(), conditions_.end(), [&](const Expr& condition) {
        return uses_var(condition, vars_[loop].get());
      });
    });
  }

  // Loops that move an index have a fixed range; the others only repeat, and must run at all. One
  // that runs in each iteration around or in none leaves no point for a later one.
  bool loops_are_plain() {
    for (size_t l = 0; l < loops_.size(); ++l) {
      const Iterator& loop = loops_[l];
      const bool once = is_int(analyzer_.simplify(loop.extent), 1);
      if (uses(loop.min, vars_) || uses(loop.extent, vars_)) return false;
      if (is_used(l) || once) continue;
      if (times_ == Times::kOnce) return false;
      if ((around_.empty() || uses(loop.extent, around_)) &&
          !analyzer_.proves_positive(loop.extent))
        return false;
    }
    return true;
  }

  // Makes a limit of an index out of a condition, or keeps it for later.
  bool take(const Expr& condition) {
    if (analyzer_.proves(condition)) return true;
    const auto* test = condition.as<Binary>();
    if (test && is_comparison(test->op) && test->lhs->dtype.is_int() && test->op != BinaryOp::kEQ &&
        test->op != BinaryOp::kNE) {
      const bool less = test->op == BinaryOp::kLT || test->op == BinaryOp::kLE;
      const bool strict = test->op == BinaryOp::kLT || test->op == BinaryOp::kGT;
      // Holds where difference < 0.
      Expr difference = less ? test->lhs - test->rhs : test->rhs - test->lhs;
      if (!strict) difference = difference - 1;
      for (size_t d = 0; d < indices_.size(); ++d) {
        if (used_[d].empty()) continue;
        const Expr limit = analyzer_.simplify(indices_[d] - difference);
        if (!uses(limit, vars_) && !spans_[d].limit) {
          spans_[d].limit = limit;
          return true;
        }
        const Expr below = analyzer_.simplify(indices_[d] + difference);
        if (!uses(below, vars_) && !spans_[d].least) {
          spans_[d].least = analyzer_.simplify(below + 1);
          return true;
        }
      }
    }
    if (uses(condition, around_) || !uses(condition, vars_)) return false;
    bool moves = false, repeats = false;
    for (size_t l = 0; l < loops_.size(); ++l)
      if (uses_var(condition, vars_[l].get())) (is_used(l) ? moves : repeats) = true;
    if (moves) conditions_.push_back(condition);
    return !moves || !repeats;  // one of repeating loops alone is the same in each iteration
  }

  // A sum of multiples of loops without gaps between its values.
  bool find_alone(size_t d) {
    Span& span = spans_[d];
    const auto form = analyzer_.linear(indices_[d], vars_);
    if (!form) return false;
    span.min = form->rest;
    Expr count = imm(indices_[d]->dtype, int64_t{1});
    std::vector<size_t> left = used_[d];
    while (!left.empty()) {
      bool found = false;
      for (size_t i = 0; i < left.size() && !found; ++i) {
        const Iterator& loop = loops_[left[i]];
        const Expr& factor = form->coefficients[left[i]];
        const bool forward = analyzer_.proves_positive(factor);
        const Expr step = forward ? factor : analyzer_.simplify(zero_of(factor) - factor);
        if (!forward && !analyzer_.proves_positive(step)) return false;
        const bool next_to = analyzer_.proves_equal(step, count);
        const bool overlaps = times_ == Times::kAny && analyzer_.proves_positive(loop.extent) &&
                              analyzer_.proves_less_equal(step, count);
        if (!next_to && !overlaps) continue;
        found = true;
        span.min = span.min + factor * (forward ? loop.min : loop.min + loop.extent - 1);
        count = analyzer_.simplify(count + step * (loop.extent - 1));
        left.erase(left.begin() + static_cast<std::ptrdiff_t>(i));
      }
      if (!found) return false;
    }
    span.min = analyzer_.simplify(span.min);
    span.end = analyzer_.simplify(span.min + count);
    return true;
  }

  bool find_together(const std::set<size_t>& dims) {
    if (dims.empty()) return true;
    std::vector<Expr> indices;
    std::set<size_t> loops;
    for (const size_t d : dims) {
      indices.push_back(indices_[d]);
      loops.insert(used_[d].begin(), used_[d].end());
    }
    std::vector<Iterator> domain;
    for (const size_t l : loops) domain.push_back(loops_[l]);
    Expr predicate;
    for (const Expr& condition : conditions_)
      predicate = predicate ? logical_and(predicate, condition) : condition;
    const auto map =
        arith::detect_iter_map(analyzer_, indices, domain, arith::MapKind::kBijective, predicate);
    if (!map) return false;
    size_t at = 0;
    for (const size_t d : dims) {
      spans_[d].min = map->min[at];
      spans_[d].end = analyzer_.simplify(map->min[at] + map->extent[at]);
      ++at;
    }
    return true;
  }

  const std::vector<Iterator>& loops_;
  const std::vector<Ref<Var>>& around_;
  Times times_;
  arith::Analyzer& analyzer_;
  std::vector<Ref<Var>> vars_;
  std::vector<Expr> indices_;
  std::vector<std::vector<size_t>> used_;  // loops that move each index
  std::vector<Expr> conditions_;           // between loops that move indices
  std::vector<Span> spans_;
};

}  // namespace

std::optional<std::vector<Span>> exact_box(const std::vector<Expr>& indices,
                                           const std::vector<Iterator>& loops,
                                           const std::vector<Ref<Var>>& around,
                                           const std::vector<Expr>& conditions, Times times,
                                           arith::Analyzer& analyzer) {
  return BoxFinder(indices, loops, around, times, analyzer).run(conditions);
}

bool proves_distinct(const std::vector<Expr>& values, std::vector<Iterator> loops,
                     const std::vector<Expr>& conditions, arith::Analyzer& analyzer) {
  const auto scope = analyzer.enter();
  std::vector<Ref<Var>> vars;
  for (const Iterator& loop : loops) vars.push_back(loop.var);
  for (Iterator& loop : loops) {
    if (uses(loop.min, vars) || uses(loop.extent, vars)) return false;
    // A condition on this loop alone leaves a shorter one.
    for (const Expr& condition : conditions) {
      const auto* test = condition.as<Binary>();
      if (!test || test->op != BinaryOp::kLT || !test->lhs.same_as(loop.var)) continue;
      const Expr count = analyzer.simplify(test->rhs - loop.min);
      if (!uses(count, vars) && analyzer.proves_less_equal(count, loop.extent)) loop.extent = count;
    }
    analyzer.bind(loop.var, loop.min, loop.extent);
  }
  std::vector<Expr> moving;
  for (const Expr& value : values)
    if (uses(value, vars)) moving.push_back(analyzer.simplify(value));
  std::erase_if(loops, [&](const Iterator& loop) { return is_int(loop.extent, 1); });
  return loops.empty() ||
         arith::detect_iter_map(analyzer, moving, loops, arith::MapKind::kInjective).has_value();
}

namespace {

class SiteFinder {
 public:
  explicit SiteFinder(const Ref<Buffer>& buffer) : buffer_(buffer) { now_.buffer = buffer; }

  void visit(const Stmt& stmt) {
    if (const auto* store = stmt.as<BufferStore>()) {
      if (store->buffer.same_as(buffer_)) add_store(*store);
    } else if (const auto* loop = stmt.as<For>()) {
      now_.loops.push_back(
          {loop->loop_var, substitute(loop->min, values_), substitute(loop->extent, values_)});
      visit(loop->body);
      now_.loops.pop_back();
    } else if (const auto* branch = stmt.as<IfThenElse>()) {
      const StoreSite before = now_;
      for (const Expr& condition : conjuncts(branch->condition))
        now_.conditions.push_back(substitute(condition, values_));
      visit(branch->then_case);
      now_ = before;
      now_.is_certain = false;
      if (branch->else_case) visit(branch->else_case);
      now_ = before;
    } else if (const auto* realize = stmt.as<BlockRealize>()) {
      visit(*realize);
    } else {
      const StoreSite before = now_;
      if (stmt.as<While>()) now_.is_certain = false;
      for (const Stmt& child : children_of(stmt)) visit(child);
      now_ = before;
    }
  }

  std::vector<StoreSite> take() { return std::move(found_); }

 private:
  void visit(const BlockRealize& realize) {
    const Block& block = *realize.block;
    if (!writes_buffer(block, buffer_)) return;
    const StoreSite before = now_;
    if (!now_.realize) now_.realize = ref_to(&realize);
    for (const Expr& condition : conjuncts(realize.predicate))
      now_.conditions.push_back(substitute(condition, values_));
    for (size_t i = 0; i < block.iter_vars.size(); ++i) {
      const Expr value = substitute(realize.iter_values[i], values_);
      values_[block.iter_vars[i].var.get()] = value;
      if (block.iter_vars[i].kind != IterKind::kSpatial) now_.reduced.push_back(value);
    }
    // What a view of the buffer or a branch leaves out cannot be told from the block's word.
    if (!block.match_buffers.empty()) now_.is_certain = false;
    const size_t known = found_.size();
    visit(block.body);
    if (found_.size() == known) add_stated(block);
    now_ = before;
  }

  void add_store(const BufferStore& store) {
    StoreSite site = now_;
    for (const Expr& index : store.indices) {
      site.is_certain = site.is_certain && index->dtype.is_scalar();
      site.region.push_back({substitute(index, values_), imm(index->dtype, int64_t{1})});
    }
    found_.push_back(std::move(site));
  }

  // A call fills what its block says that it writes.
  void add_stated(const Block& block) {
    for (const Ref<BufferRegion>& write : block.writes) {
      if (!write->buffer.same_as(buffer_)) continue;
      StoreSite site = now_;
      site.region = substitute(write, values_)->region;
      found_.push_back(std::move(site));
    }
  }

  Ref<Buffer> buffer_;
  StoreSite now_;
  Substitution values_;
  std::vector<StoreSite> found_;
};

}  // namespace

std::vector<StoreSite> store_sites(const Stmt& root, const Ref<Buffer>& buffer) {
  SiteFinder finder(buffer);
  for (const Stmt& child : children_of(root)) finder.visit(child);
  return finder.take();
}

bool runs_whole_domain(const Path& path) {
  const auto* realize = path.target().as<BlockRealize>();
  arith::Analyzer analyzer;
  std::vector<Iterator> loops;
  for (size_t i = 0; i + 1 < path.stmts.size(); ++i) {
    const Stmt& stmt = path.stmts[i];
    if (stmt.as<IfThenElse>() || stmt.as<While>()) return false;
    if (const auto* loop = stmt.as<For>())
      loops.push_back({loop->loop_var, loop->min, loop->extent});
    if (const auto* outer = stmt.as<BlockRealize>()) {
      loops.clear();
      for (const IterVar& iter : outer->block->iter_vars) analyzer.bind(iter.var, iter.domain);
    }
  }
  const auto run = exact_box(realize->iter_values, loops, {}, conjuncts(realize->predicate),
                             Times::kAny, analyzer);
  if (!run) return false;
  for (size_t i = 0; i < run->size(); ++i) {
    const Range& domain = realize->block->iter_vars[i].domain;
    const Span& span = (*run)[i];
    const Expr end = domain.min + domain.extent;
    if (!analyzer.proves_less_equal(span.min, domain.min) ||
        !analyzer.proves_less_equal(end, span.end) ||
        (span.least && !analyzer.proves_less_equal(span.least, domain.min)) ||
        (span.limit && !analyzer.proves_less_equal(end, span.limit)))
      return false;
  }
  return true;
}

bool runs_once_everywhere(const Path& path) {
  if (!runs_whole_domain(path)) return false;
  const auto* realize = path.target().as<BlockRealize>();
  arith::Analyzer analyzer;
  bind_path(path, analyzer);
  std::vector<Iterator> loops;
  for (const Ref<For>& loop : loops_of(path))
    loops.push_back({loop->loop_var, loop->min, loop->extent});
  return proves_distinct(realize->iter_values, loops, conjuncts(realize->predicate), analyzer);
}

bool is_filled(const Stmt& root, const Ref<Buffer>& buffer, const BlockRealize* reader) {
  std::vector<Range> all;
  for (const Expr& dim : buffer->shape) all.push_back({zero_of(dim), dim});
  std::unordered_set<const Node*> in_front;
  for (const Ref<BlockRealize>& realize : realizes_in(root)) {
    if (realize.get() == reader) break;
    in_front.insert(realize.get());
  }
  const auto sites = store_sites(root, buffer);
  return std::any_of(sites.begin(), sites.end(), [&](const StoreSite& site) {
    if (!site.realize || in_front.count(site.realize.get()) == 0) return false;
    arith::Analyzer analyzer;
    const std::vector<Range> stated =
        whole_region(*site.realize, site.realize->block->writes, buffer, analyzer);
    for (size_t d = 0; d < all.size(); ++d)
      if (!analyzer.proves_less_equal(stated[d].min, all[d].min) ||
          !analyzer.proves_less_equal(all[d].extent, stated[d].min + stated[d].extent))
        return false;
    return proves_written(site, 0, {all}, analyzer);
  });
}

bool counts_runs(const Block& block) {
  for (const Ref<BufferRegion>& write : block.writes)
    if (reads_buffer(block, write->buffer)) return true;
  return std::any_of(block.iter_vars.begin(), block.iter_vars.end(),
                     [](const IterVar& iter) { return iter.kind != IterKind::kSpatial; });
}

void check_runs_whole_domain(const Path& path) {
  const auto* realize = path.target().as<BlockRealize>();
  const bool once = counts_runs(*realize->block);
  if (!(once ? runs_once_everywhere(path) : runs_whole_domain(path)))
    illegal(realize->origin, "the loops of block `{}` are not known to run all of its domain{}",
            realize->block->name, once ? " once" : "");
}

std::vector<Range> whole_region(const BlockRealize& realize,
                                const std::vector<Ref<BufferRegion>>& regions,
                                const Ref<Buffer>& buffer, arith::Analyzer& analyzer) {
  VarRanges axes;
  for (const IterVar& iter : realize.block->iter_vars) {
    axes[iter.var.get()] = iter.domain;
    analyzer.bind(iter.var, iter.domain);
  }
  std::vector<Range> whole;
  for (const Ref<BufferRegion>& region : regions) {
    if (!region->buffer.same_as(buffer)) continue;
    const std::vector<Range> part = relaxed(*region, axes, analyzer);
    whole = whole.empty() ? part : hull(whole, part, analyzer);
  }
  return whole;
}

bool proves_disjoint(const std::vector<Range>& a, const std::vector<Range>& b,
                     arith::Analyzer& analyzer) {
  for (size_t d = 0; d < a.size() && d < b.size(); ++d)
    if (analyzer.proves_less_equal(a[d].min + a[d].extent, b[d].min) ||
        analyzer.proves_less_equal(b[d].min + b[d].extent, a[d].min))
      return true;
  return false;
}

/// `indices` with a quotient and a remainder of one value by one number joined to that value
/// again.
static std::vector<Expr> joined(std::vector<Expr> indices) {
  for (size_t d = 0; d + 1 < indices.size();) {
    const auto *quotient = indices[d].as<Binary>(), *remainder = indices[d + 1].as<Binary>();
    if (quotient && remainder && quotient->op == BinaryOp::kFloorDiv &&
        remainder->op == BinaryOp::kFloorMod && structural_equal(quotient->lhs, remainder->lhs) &&
        structural_equal(quotient->rhs, remainder->rhs)) {
      indices[d] = quotient->lhs;
      indices.erase(indices.begin() + static_cast<std::ptrdiff_t>(d) + 1);
    } else {
      ++d;
    }
  }
  return indices;
}

/// Whether the blocks store at places that are parts of one bijection, over domains that do not
/// meet: pieces of a partitioned loop do.
static bool store_apart(const Block& a, const Block& b, arith::Analyzer& analyzer) {
  const BufferStore *to = only_store(a), *other = only_store(b);
  if (!to || !other || !to->buffer.same_as(other->buffer) ||
      a.iter_vars.size() != b.iter_vars.size())
    return false;
  Substitution renamed;
  std::vector<arith::Iterator> axes;
  bool apart = false;
  for (size_t i = 0; i < a.iter_vars.size(); ++i) {
    const IterVar &x = a.iter_vars[i], &y = b.iter_vars[i];
    renamed[y.var.get()] = Expr(x.var);
    if (x.kind != IterKind::kSpatial || y.kind != IterKind::kSpatial) continue;
    apart = apart || proves_disjoint({x.domain}, {y.domain}, analyzer);
    const Range both = hull({x.domain}, {y.domain}, analyzer)[0];
    axes.push_back({x.var, both.min, both.extent});
  }
  if (!apart) return false;
  {
    // Indices of a piece may be simpler, for what its axes run through.
    const auto scope = analyzer.enter();
    for (size_t i = 0; i < a.iter_vars.size(); ++i)
      analyzer.bind(a.iter_vars[i].var, b.iter_vars[i].domain);
    for (size_t d = 0; d < to->indices.size(); ++d)
      if (!analyzer.proves_equal(to->indices[d], substitute(other->indices[d], renamed)))
        return false;
  }
  return arith::detect_iter_map(analyzer, joined(to->indices), axes, arith::MapKind::kInjective)
      .has_value();
}

bool places_differ(const std::vector<Expr>& indices, const std::vector<IterVar>& axes,
                   arith::Analyzer& analyzer) {
  std::vector<Iterator> domain;
  for (const IterVar& iter : axes)
    domain.push_back({iter.var, iter.domain.min, iter.domain.extent});
  return proves_distinct(joined(indices), domain, {}, analyzer);
}

bool write_apart(const BlockRealize& a, const BlockRealize& b, const Ref<Buffer>& buffer,
                 arith::Analyzer& analyzer) {
  const auto scope = analyzer.enter();
  return store_apart(*a.block, *b.block, analyzer) || store_apart(*b.block, *a.block, analyzer) ||
         proves_disjoint(whole_region(a, a.block->writes, buffer, analyzer),
                         whole_region(b, b.block->writes, buffer, analyzer), analyzer);
}

bool proves_written(const StoreSite& site, size_t shared,
                    const std::vector<std::vector<Range>>& boxes, arith::Analyzer& analyzer) {
  if (!site.realize) return false;
  const auto scope = analyzer.enter();
  const std::vector<Range> whole =
      whole_region(*site.realize, site.realize->block->writes, site.buffer, analyzer);
  for (const std::vector<Range>& box : boxes)
    if (proves_disjoint(box, whole, analyzer)) return true;
  if (!site.is_certain) return false;
  std::vector<Ref<Var>> around;
  for (size_t l = 0; l < shared; ++l) around.push_back(site.loops[l].var);
  std::vector<Iterator> loops(site.loops.begin() + static_cast<std::ptrdiff_t>(shared),
                              site.loops.end());
  // A sum is complete where all of its steps are taken in each iteration.
  for (const Expr& value : site.reduced) {
    if (uses(value, around)) return false;
    for (const Iterator& loop : loops)
      if (uses_var(value, loop.var.get()) && (uses(loop.min, around) || uses(loop.extent, around)))
        return false;
  }
  std::vector<Expr> indices;
  for (const Range& range : site.region) {
    Expr index = range.min;
    if (!is_int(range.extent, 1)) {
      const Ref<Var> inside = var("inside", index->dtype);
      loops.push_back({inside, zero_of(index), range.extent});
      index = index + inside;
    }
    indices.push_back(index);
  }
  const auto written = exact_box(indices, loops, around, site.conditions, Times::kAny, analyzer);
  if (!written) return false;
  std::vector<std::vector<Range>> all = boxes;
  all.push_back(whole);
  for (size_t d = 0; d < indices.size(); ++d) {
    const Span& span = (*written)[d];
    const auto starts_from = [&](const Expr& least) {
      return std::any_of(all.begin(), all.end(), [&](const std::vector<Range>& box) {
        return analyzer.proves_less_equal(least, box[d].min);
      });
    };
    const auto ends_by = [&](const Expr& end) {
      return std::any_of(all.begin(), all.end(), [&](const std::vector<Range>& box) {
        return analyzer.proves_less_equal(box[d].min + box[d].extent, end);
      });
    };
    if (!starts_from(span.min) || (span.least && !starts_from(span.least))) return false;
    if (!ends_by(span.end) || (span.limit && !ends_by(span.limit))) return false;
  }
  return true;
}

bool iterations_are_apart(const Stmt& root, const Path& path) {
  const std::vector<Ref<For>> around = loops_of(path);
  const std::vector<Ref<BlockRealize>> below = outermost_realizes_in(path.target().as<For>()->body);
  if (below.size() < 2) return true;
  for (const Ref<BlockRealize>& user : below) {
    const Path to =
        find_path(path.target(), [&](const Stmt& stmt) { return stmt.get() == user.get(); });
    std::vector<Ref<For>> inner = loops_of(to);
    inner.erase(inner.begin());  // the loop itself stands still
    Substitution axes;
    for (size_t i = 0; i < user->iter_values.size(); ++i)
      axes[user->block->iter_vars[i].var.get()] = user->iter_values[i];
    arith::Analyzer analyzer;
    bind_path(path, analyzer);
    for (const Ref<For>& loop : inner) analyzer.bind(loop->loop_var, loop->min, loop->extent);
    std::vector<Ref<BufferRegion>> used = user->block->reads;
    used.insert(used.end(), user->block->writes.begin(), user->block->writes.end());
    for (const Ref<BufferRegion>& region : used) {
      const bool is_shared = std::any_of(below.begin(), below.end(), [&](const auto& other) {
        return other.get() != user.get() && writes_buffer(*other->block, region->buffer);
      });
      if (!is_shared) continue;
      const std::vector<Range> box = relaxed(*substitute(region, axes), ranges_of(inner), analyzer);
      for (const StoreSite& site : store_sites(root, region->buffer)) {
        if (site.realize && site.realize.get() == user.get()) continue;
        size_t shared = 0;
        while (shared < around.size() && shared < site.loops.size() &&
               site.loops[shared].var.same_as(around[shared]->loop_var))
          ++shared;
        if (shared < around.size()) continue;  // not below the loop
        if (!proves_written(site, shared, {box}, analyzer)) return false;
      }
    }
  }
  return true;
}

}  // namespace tenon::tir
