// SPDX-License-Identifier: Apache-2.0
// reverse_compute_inline: puts an element-wise consumer into its producer's store.
#include <algorithm>

#include "tenon/tir/schedule/coverage.h"
#include "tenon/tir/schedule/edit.h"

namespace tenon::tir {

namespace {

/// value < end, also where dimensions are symbolic: x // d < e where x < d * e, x % d < d.
bool stays_below(const Expr& value, const Expr& end, arith::Analyzer& analyzer) {
  if (analyzer.proves_less(value, end)) return true;
  const auto* op = value.as<Binary>();
  if (op && op->op == BinaryOp::kFloorMod) return analyzer.proves_equal(op->rhs, end);
  if (op && op->op == BinaryOp::kFloorDiv) return analyzer.proves_less(op->lhs, op->rhs * end);
  return false;
}

/// The points of a producer's domain that a consumer reads: a box, and a condition where that does
/// not say it all.
class Part {
 public:
  std::vector<Range> box;
  Expr condition = boolean(true);
  arith::Analyzer analyzer;  // knows the producer's axes

  explicit Part(const Block& producer) : box(domains_of(producer)), producer_(producer) {
    for (const IterVar& iter : producer.iter_vars) analyzer.bind(iter.var, iter.domain);
  }

  /// Leaves the points where `value`, in terms of the producer's axes, lies in `range`.
  void keep(const Expr& value, const Range& range) {
    const Expr end = range.min + range.extent;
    // Where the value is an axis and something constant, that axis is cut; a condition does it
    // elsewhere.
    for (size_t a = 0; a < box.size(); ++a) {
      const Expr offset = analyzer.simplify(value - Expr(producer_.iter_vars[a].var));
      if (moves(offset)) continue;
      const Expr low = analyzer.simplify(max(box[a].min, range.min - offset));
      const Expr high = analyzer.simplify(min(box[a].min + box[a].extent, end - offset));
      box[a] = {low, analyzer.simplify(high - low)};
      return;
    }
    if (!analyzer.proves_less_equal(range.min, value))
      condition = logical_and(condition, range.min <= value);
    if (!stays_below(value, end, analyzer)) condition = logical_and(condition, value < end);
  }

  bool is_empty() const {
    return std::any_of(box.begin(), box.end(), [](const Range& range) {
      const auto extent = as_int(range.extent);
      return extent && *extent <= 0;
    });
  }

 private:
  bool moves(const Expr& expr) const {
    return std::any_of(producer_.iter_vars.begin(), producer_.iter_vars.end(),
                       [&](const IterVar& iter) { return uses_var(expr, iter.var.get()); });
  }

  const Block& producer_;
};

/// Where a block reads `buffer` to make what it stores; null where that is no single place.
const BufferLoad* only_load(const BufferStore& store, const Ref<Buffer>& buffer) {
  const BufferLoad* found = nullptr;
  bool is_single = !gives_place_of(store.value, buffer);
  const auto see = [&](const BufferLoad& load) {
    if (!load.buffer.same_as(buffer)) return;
    is_single = is_single && (!found || structural_equal(ref_to(found), ref_to(&load)));
    found = &load;
  };
  walk<BufferLoad>(store.value, see);
  for (const Expr& index : store.indices)
    walk<BufferLoad>(index, [&](const BufferLoad& load) {
      is_single = is_single && !load.buffer.same_as(buffer);
    });
  return is_single ? found : nullptr;
}

/// Whether all that `reader` reads by `load` is stored by `producer` in the course of the function.
bool stores_all_of(const Block& producer, const BufferStore& store, const Block& reader,
                   const BufferLoad& load) {
  arith::Analyzer analyzer;
  VarRanges axes;
  for (const IterVar& iter : reader.iter_vars) {
    axes[iter.var.get()] = iter.domain;
    analyzer.bind(iter.var, iter.domain);
  }
  const std::vector<Range> read =
      relaxed(*BufferRegion::point(load.buffer, load.indices), axes, analyzer);
  std::vector<arith::Iterator> domain;
  for (const IterVar& iter : producer.iter_vars)
    domain.push_back({iter.var, iter.domain.min, iter.domain.extent});
  const auto stored = exact_box(store.indices, domain, {}, {}, Times::kAny, analyzer);
  if (!stored) return false;
  for (size_t d = 0; d < read.size(); ++d)
    if (!analyzer.proves_less_equal((*stored)[d].min, read[d].min) ||
        !analyzer.proves_less_equal(read[d].min + read[d].extent, (*stored)[d].end))
      return false;
  return true;
}

/// Whether every use of `buffer` in `reader` is at `place`.
bool reads_only_at(const BufferStore& reader, const Ref<Buffer>& buffer,
                   const std::vector<Expr>& place, arith::Analyzer& analyzer) {
  bool same = true;
  walk<BufferLoad>(ref_to(&reader), [&](const BufferLoad& load) {
    if (!load.buffer.same_as(buffer)) return;
    for (size_t d = 0; d < place.size(); ++d)
      same = same && analyzer.proves_equal(load.indices[d], place[d]);
  });
  return same;
}

/// A nest that runs `block` over `box` where `condition`, in terms of its axes, holds.
Stmt nest_over(const Ref<Block>& block, const std::vector<Range>& box, const Expr& condition) {
  const Nest nest = make_nest(block, box);
  if (is_int(condition, 1)) return nest.stmt;
  const Path inner = find_block(nest.stmt, block->name);
  const auto* realize = inner.target().as<BlockRealize>();
  Substitution bindings;
  for (size_t i = 0; i < realize->iter_values.size(); ++i)
    bindings[block->iter_vars[i].var.get()] = realize->iter_values[i];
  return replace(inner, make<BlockRealize>(realize->iter_values, substitute(condition, bindings),
                                           block, realize->origin));
}

/// One consumer and one producer that it may be put into.
class Merge {
 public:
  Merge(const Schedule& schedule, const BlockRV& consumer, const BlockRV& producer)
      : schedule_(schedule),
        producer_path_(find_block(schedule.func()->body, producer.name)),
        consumer_(schedule.realize(consumer)),
        producer_(schedule.realize(producer)),
        store_(element_wise_store(*consumer_)),
        part_(*producer_->block) {}

  /// Why it is not possible; empty where it is.
  std::string refusal() {
    const std::string& producer = producer_->block->name;
    made_ = only_store(*producer_->block);
    if (!is_spatial(*producer_->block) || !made_ || !is_int(producer_->predicate, 1) ||
        !is_alone(producer_path_) || !producer_->block->alloc_buffers.empty() ||
        !producer_->block->match_buffers.empty())
      return fmt::format("block `{}` is not element-wise", producer);
    const Ref<Buffer>& buffer = made_->buffer;
    const BufferLoad* load = only_load(store_, buffer);
    if (!load || !schedule_.is_intermediate(buffer))
      return fmt::format("`{}` is a parameter, read at several places or through its address",
                         buffer->name);
    if (!runs_whole_domain(producer_path_))
      return fmt::format("the loops of block `{}` are not known to run all of its domain",
                         producer);
    if (!find_part(*load))
      return fmt::format("its axes do not follow from indices {} of `{}`", str(load->indices),
                         buffer->name);
    if (part_.is_empty())
      return fmt::format("`{}` writes another part of `{}`", producer, buffer->name);
    if (!stores_all_of(*producer_->block, *made_, *consumer_->block, *load))
      return fmt::format("block `{}` is not known to make all that it reads of `{}`", producer,
                         buffer->name);
    std::string why = others();
    if (why.empty()) why = order();
    return why;
  }

  /// The nest of both in one; takes the name of the consumer.
  Stmt nest() {
    const Expr value = rewrite(substitute(store_.value, axes_),
                               [&](const NodePtr& node) -> std::optional<NodePtr> {
                                 const auto* load = node.as<BufferLoad>();
                                 if (!load || !load->buffer.same_as(made_->buffer))
                                   return std::nullopt;
                                 return NodePtr(made_->value);
                               });
    Block::Parts parts = producer_->block->parts();
    parts.name = consumer_->block->name;
    arith::Analyzer analyzer;
    for (size_t i = 0; i < part_.box.size(); ++i) {
      parts.iter_vars[i].domain = part_.box[i];
      analyzer.bind(parts.iter_vars[i].var, part_.box[i]);
    }
    std::vector<Expr> place;
    for (const Expr& index : store_.indices)
      place.push_back(analyzer.simplify(substitute(index, axes_)));
    parts.body = make<BufferStore>(store_.buffer, value, place, store_.origin);
    const Ref<Block> merged = with_accesses(make<Block>(
        std::move(parts), Origin::merge({producer_->block->origin, consumer_->block->origin})));
    return nest_over(merged, part_.box, part_.condition);
  }

  const Ref<BlockRealize>& producer() const { return producer_; }

 private:
  /// The consumer's axes in terms of the producer's, and the part of these that it reads.
  bool find_part(const BufferLoad& load) {
    const std::vector<IterVar>& iters = consumer_->block->iter_vars;
    auto values = solve_axes(load.indices, iters, made_->indices, part_.analyzer);
    if (!values) return false;
    axes_ = std::move(*values);
    for (const IterVar& iter : iters)
      part_.keep(downcast<ExprNode>(axes_[iter.var.get()]), iter.domain);
    // An index that no axis moves says which elements are read, and gives no axis.
    for (size_t d = 0; d < load.indices.size(); ++d) {
      const bool moves = std::any_of(iters.begin(), iters.end(), [&](const IterVar& iter) {
        return !is_int(iter.domain.extent, 1) && uses_var(load.indices[d], iter.var.get());
      });
      if (moves) continue;
      const Expr at = substitute(load.indices[d], axes_);
      part_.keep(made_->indices[d], {at, imm(at->dtype, int64_t{1})});
    }
    return true;
  }

  // Nobody else writes those elements, or reads them.
  std::string others() const {
    arith::Analyzer analyzer;
    const Ref<Buffer>& buffer = made_->buffer;
    for (const Ref<BlockRealize>& other : realizes_in(schedule_.func()->body)) {
      if (other.same_as(producer_) || other.same_as(consumer_) ||
          other.get() == schedule_.func()->body.get())
        continue;
      const std::string& name = other->block->name;
      if (writes_buffer(*other->block, buffer) &&
          !write_apart(*producer_, *other, buffer, analyzer))
        return fmt::format("block `{}` writes `{}` as well as `{}`", name, buffer->name,
                           producer_->block->name);
      const auto scope = analyzer.enter();
      if (reads_buffer(*other->block, buffer) &&
          !proves_disjoint(whole_region(*producer_, producer_->block->writes, buffer, analyzer),
                           whole_region(*other, other->block->reads, buffer, analyzer), analyzer))
        return fmt::format("block `{}` reads `{}` as well", name, buffer->name);
    }
    return {};
  }

  // What the producer reads must be the same where the consumer stands, which stores it in the
  // order of the producer.
  std::string order() {
    bool after = false, before = true;
    for (const Ref<BlockRealize>& other : realizes_in(schedule_.func()->body)) {
      if (other.same_as(consumer_)) before = false;
      if (after && before)
        for (const Ref<BufferRegion>& read : producer_->block->reads)
          if (writes_buffer(*other->block, read->buffer))
            return fmt::format("block `{}` writes `{}`, which `{}` reads before",
                               other->block->name, read->buffer->name, producer_->block->name);
      if (!other.same_as(producer_)) continue;
      if (!before) return fmt::format("block `{}` comes after it", producer_->block->name);
      after = true;
    }
    std::vector<Expr> place;
    for (const Expr& index : store_.indices) place.push_back(substitute(index, axes_));
    arith::Analyzer analyzer;
    for (const IterVar& iter : consumer_->block->iter_vars) analyzer.bind(iter.var, iter.domain);
    if (!reads_only_at(store_, store_.buffer, store_.indices, analyzer) ||
        !reads_only_at(*made_, store_.buffer, place, part_.analyzer))
      return fmt::format("`{}` is read at other places than it is written", store_.buffer->name);
    return {};
  }

  const Schedule& schedule_;
  const Path producer_path_;
  Ref<BlockRealize> consumer_, producer_;
  const BufferStore& store_;
  const BufferStore* made_ = nullptr;
  Part part_;
  Substitution axes_;
};

}  // namespace

void Schedule::reverse_compute_inline(const BlockRV& block) {
  const Path path = path_of(block);
  check_outermost(path);
  const Ref<BlockRealize> consumer = downcast<BlockRealize>(path.target());
  element_wise_store(*consumer);
  if (!is_alone(path))
    illegal(consumer->origin, "block `{}` shares its loops with others; it cannot be moved",
            block.name);
  if (!runs_whole_domain(path))
    illegal(consumer->origin, "the loops of block `{}` are not known to run all of its domain",
            block.name);
  for (const Ref<BufferRegion>& read : consumer->block->reads)
    check_only_blocks_use(root(), read->buffer, consumer->origin);
  std::string reason = "nothing that another block writes";
  for (const BlockRV& name : producers(block)) {
    check_outermost(path_of(name));
    Merge merge(*this, block, name);
    std::string refusal = merge.refusal();
    if (!refusal.empty()) {
      reason = std::move(refusal);
      continue;
    }
    // It stands where the consumer stood: what else that reads is there by then.
    Stmt body = replace(nest_path(path), merge.nest());
    const Path gone =
        find_path(body, [&](const Stmt& stmt) { return stmt.get() == merge.producer().get(); });
    body = replace(gone, Stmt());
    commit(drop_unused_allocs(body));
    record("reverse_compute_inline", {block});
    return;
  }
  illegal(consumer->origin, "block `{}` cannot be put into a producer: {}", block.name, reason);
}

}  // namespace tenon::tir
