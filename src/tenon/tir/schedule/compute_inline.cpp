// compute_inline and reverse_compute_inline: one element-wise block put into another.
#include <algorithm>

#include "tenon/tir/schedule/edit.h"

namespace tenon::tir {

namespace {

/// Whether a buffer's value is still the same at every later point of the program.
void check_not_overwritten(const Schedule& schedule, const Block& block) {
  bool after = false;
  for (const Ref<BlockRealize>& other : realizes_in(schedule.func()->body)) {
    if (other->block->name == block.name) {
      after = true;
      continue;
    }
    if (!after) continue;
    for (const auto& read : block.reads)
      if (writes_buffer(*other->block, read->buffer))
        illegal(block.origin, "block `{}` writes `{}`, which `{}` reads before", other->block->name,
                read->buffer->name, block.name);
  }
}

/// value < end, also where dimensions are symbolic: x // d < e where x < d * e, x % d < d.
bool stays_below(const Expr& value, const Expr& end, arith::Analyzer& analyzer) {
  if (analyzer.proves_less(value, end)) return true;
  const auto* op = value.as<Binary>();
  if (op && op->op == BinaryOp::kFloorMod) return analyzer.proves_equal(op->rhs, end);
  if (op && op->op == BinaryOp::kFloorDiv) return analyzer.proves_less(op->lhs, op->rhs * end);
  return false;
}

const BufferStore& plain_store(const Ref<BlockRealize>& realize) {
  const Block& block = *realize->block;
  const BufferStore* store = only_store(block);
  if (!is_spatial(block) || !store || !block.match_buffers.empty() || !block.alloc_buffers.empty())
    illegal(block.origin, "block `{}` is not element-wise: expected spatial axes and one store",
            block.name);
  if (!is_int(realize->predicate, 1))
    illegal(block.origin, "block `{}` runs under a predicate; expected none", block.name);
  return *store;
}

}  // namespace

void Schedule::compute_inline(const BlockRV& block) {
  const Path path = path_of(block);
  check_outermost(path);
  const Ref<BlockRealize> realize = downcast<BlockRealize>(path.target());
  const BufferStore& store = plain_store(realize);
  const Ref<Buffer> buffer = store.buffer;
  if (!is_intermediate(buffer))
    illegal(realize->origin, "block `{}` writes `{}`, which is a parameter; it cannot vanish",
            block.name, buffer->name);
  for (const Ref<Block>& other : other_blocks(root(), block))
    if (writes_buffer(*other, buffer))
      illegal(realize->origin, "block `{}` writes `{}` as well", other->name, buffer->name);
  check_not_overwritten(*this, *realize->block);
  std::vector<BlockRV> readers = consumers(block);
  std::reverse(readers.begin(), readers.end());  // blocks inside blocks before these
  if (readers.empty())
    illegal(realize->origin, "nothing reads `{}`, which block `{}` writes", buffer->name,
            block.name);
  {
    arith::Analyzer axes;
    for (const IterVar& iter : realize->block->iter_vars) axes.bind(iter.var, iter.domain);
    if (!solve_axes(store.indices, realize->block->iter_vars, store.indices, axes))
      illegal(realize->origin, "the axes of block `{}` do not follow from indices {}", block.name,
              str(store.indices));
  }
  Stmt body = root();
  for (const BlockRV& reader : readers) {
    const Path at = find_block(body, reader.name);
    const auto* user = at.target().as<BlockRealize>();
    arith::Analyzer inside;
    for (const IterVar& iter : user->block->iter_vars) inside.bind(iter.var, iter.domain);
    const auto replacer = [&](const NodePtr& node) -> std::optional<NodePtr> {
      const auto* load = node.as<BufferLoad>();
      if (!load || !load->buffer.same_as(buffer)) return std::nullopt;
      auto values = solve_axes(store.indices, realize->block->iter_vars, load->indices, inside);
      if (!values) return std::nullopt;
      return NodePtr(substitute(store.value, *values));
    };
    Block::Parts parts = user->block->parts();
    parts.body = rewrite(parts.body, replacer);
    if (parts.init) parts.init = rewrite(parts.init, replacer);
    Ref<Block> next = with_accesses(with_parts(user->block, std::move(parts)));
    if (reads_buffer(*next, buffer))
      illegal(realize->origin, "block `{}` reads `{}` in a way that cannot be replaced",
              reader.name, buffer->name);
    body = replace(at, make<BlockRealize>(user->iter_values, user->predicate, next, user->origin));
  }
  body = replace(find_block(body, block.name), Stmt());
  commit(drop_unused_allocs(body));
  record("compute_inline", {block});
}

void Schedule::reverse_compute_inline(const BlockRV& block) {
  const Path path = path_of(block);
  check_outermost(path);
  const Ref<BlockRealize> realize = downcast<BlockRealize>(path.target());
  const BufferStore& store = plain_store(realize);
  // The producer is the one block that writes the elements that this one reads.
  struct Candidate {
    Ref<BlockRealize> producer;
    const BufferLoad* load;
  };
  std::optional<Candidate> found;
  std::string reason = "nothing that another block writes";
  std::vector<const BufferLoad*> loads;
  walk<BufferLoad>(store.value, [&](const BufferLoad& load) { loads.push_back(&load); });
  Substitution solution;
  std::vector<Range> domains;
  Expr predicate;
  for (const BlockRV& name : producers(block)) {
    check_outermost(path_of(name));
    const Ref<BlockRealize> producer = this->realize(name);
    if (!is_spatial(*producer->block) || !only_store(*producer->block) ||
        !is_int(producer->predicate, 1) || !is_alone(path_of(name))) {
      reason = fmt::format("block `{}` is not element-wise", name.name);
      continue;
    }
    const BufferStore& made = *only_store(*producer->block);
    const BufferLoad* load = nullptr;
    bool same = true;
    for (const BufferLoad* l : loads) {
      if (!l->buffer.same_as(made.buffer)) continue;
      if (load && !structural_equal(ref_to(load), ref_to(l))) same = false;
      load = l;
    }
    if (!load || !same || !is_intermediate(made.buffer)) {
      reason = fmt::format("`{}` is a parameter or read at several places", made.buffer->name);
      continue;
    }
    arith::Analyzer analyzer;
    for (const IterVar& iter : producer->block->iter_vars) analyzer.bind(iter.var, iter.domain);
    auto values = solve_axes(load->indices, realize->block->iter_vars, made.indices, analyzer);
    if (!values) {
      reason = fmt::format("its axes do not follow from indices {} of `{}`", str(load->indices),
                           made.buffer->name);
      continue;
    }
    // The producer's domain, without what this block does not run over.
    std::vector<Range> cut = domains_of(*producer->block);
    Expr guard = boolean(true);
    bool none = false;
    for (const IterVar& iter : realize->block->iter_vars) {
      const Expr value = downcast<ExprNode>((*values)[iter.var.get()]);
      const Expr end = iter.domain.min + iter.domain.extent;
      // Where the value is an axis of the producer, that axis is cut; a guard does it elsewhere.
      bool is_axis = false;
      for (size_t a = 0; a < cut.size() && !is_axis; ++a) {
        const Expr offset = analyzer.simplify(value - Expr(producer->block->iter_vars[a].var));
        bool still = true;
        for (const IterVar& other : producer->block->iter_vars)
          still = still && !uses_var(offset, other.var.get());
        if (!still) continue;
        is_axis = true;
        const Expr low = analyzer.simplify(max(cut[a].min, iter.domain.min - offset));
        const Expr high = analyzer.simplify(min(cut[a].min + cut[a].extent, end - offset));
        cut[a] = {low, analyzer.simplify(high - low)};
        const auto extent = as_int(cut[a].extent);
        none = none || (extent && *extent <= 0);
      }
      if (is_axis) continue;
      if (!analyzer.proves_less_equal(iter.domain.min, value))
        guard = logical_and(guard, iter.domain.min <= value);
      if (!stays_below(value, end, analyzer)) guard = logical_and(guard, value < end);
    }
    // No overlap at all: another writer's part.
    if (none) {
      reason = fmt::format("`{}` writes another part of `{}`", name.name, made.buffer->name);
      continue;
    }
    if (found)
      illegal(realize->origin, "blocks `{}` and `{}` both write what `{}` reads; expected one",
              found->producer->block->name, name.name, block.name);
    found = Candidate{producer, load};
    solution = std::move(*values);
    domains = std::move(cut);
    predicate = guard;
  }
  if (!found)
    illegal(realize->origin, "block `{}` cannot be put into a producer: {}", block.name, reason);
  const Ref<Block> producer = found->producer->block;
  const BufferStore& made = *only_store(*producer);
  // All that this block runs over comes from that producer.
  {
    std::optional<int64_t> covered = 1, whole = 1;
    for (const Range& range : domains) {
      const auto n = as_int(range.extent);
      covered = covered && n ? std::optional<int64_t>(*covered * *n) : std::nullopt;
    }
    for (const IterVar& iter : realize->block->iter_vars) {
      const auto n = as_int(iter.domain.extent);
      whole = whole && n ? std::optional<int64_t>(*whole * *n) : std::nullopt;
    }
    if (covered && whole && *covered < *whole)
      illegal(realize->origin, "block `{}` makes {} of the {} elements that `{}` reads",
              producer->name, *covered, *whole, block.name);
  }
  // Nobody else reads those elements.
  for (const BlockRV& other : consumers(BlockRV{producer->name})) {
    if (other == block) continue;
    arith::Analyzer analyzer;
    const Ref<BlockRealize> reader = this->realize(other);
    bool apart = false;
    for (const auto& read : reader->block->reads) {
      if (!read->buffer.same_as(made.buffer)) continue;
      VarRanges all;
      for (const IterVar& iter : reader->block->iter_vars) all[iter.var.get()] = iter.domain;
      const auto box = relaxed(*read, all, analyzer);
      VarRanges mine;
      for (const IterVar& iter : producer->iter_vars) mine[iter.var.get()] = iter.domain;
      const auto written = relaxed(*producer->writes[0], mine, analyzer);
      for (size_t d = 0; d < box.size(); ++d)
        if (analyzer.proves_less_equal(box[d].min + box[d].extent, written[d].min) ||
            analyzer.proves_less_equal(written[d].min + written[d].extent, box[d].min))
          apart = true;
    }
    if (!apart)
      illegal(realize->origin, "block `{}` reads `{}` as well as `{}`", other.name,
              made.buffer->name, block.name);
  }
  // What this block writes must not be needed between.
  const std::vector<Expr> at_indices = [&] {
    std::vector<Expr> out;
    for (const Expr& index : store.indices) out.push_back(substitute(index, solution));
    return out;
  }();
  Expr value = substitute(store.value, solution);
  value = rewrite(value, [&](const NodePtr& node) -> std::optional<NodePtr> {
    const auto* load = node.as<BufferLoad>();
    if (!load || !load->buffer.same_as(made.buffer)) return std::nullopt;
    return NodePtr(made.value);
  });
  arith::Analyzer analyzer;
  for (size_t i = 0; i < producer->iter_vars.size(); ++i)
    analyzer.bind(producer->iter_vars[i].var, domains[i]);
  std::vector<Expr> indices;
  for (const Expr& index : at_indices) indices.push_back(analyzer.simplify(index));
  Block::Parts parts = producer->parts();
  parts.name = block.name;
  for (size_t i = 0; i < domains.size(); ++i) parts.iter_vars[i].domain = domains[i];
  parts.body = make<BufferStore>(store.buffer, value, indices, store.origin);
  const Ref<Block> merged = with_accesses(
      make<Block>(std::move(parts), Origin::merge({producer->origin, realize->block->origin})));
  Nest nest = make_nest(merged, domains);
  if (!is_int(predicate, 1)) {
    const Path inner = find_block(nest.stmt, merged->name);
    const auto* r = inner.target().as<BlockRealize>();
    Substitution bindings;
    for (size_t i = 0; i < r->iter_values.size(); ++i)
      bindings[merged->iter_vars[i].var.get()] = r->iter_values[i];
    nest.stmt = replace(inner, make<BlockRealize>(r->iter_values, substitute(predicate, bindings),
                                                  merged, r->origin));
  }
  // The merged block stands where the consumer stood: what else it reads is there by then.
  Stmt body = replace(nest_path(path), nest.stmt);
  const Path gone = find_path(body, [&](const Stmt& stmt) {
    const auto* r = stmt.as<BlockRealize>();
    return r && r->block->name == producer->name && r->block.same_as(producer);
  });
  body = replace(gone, Stmt());
  commit(drop_unused_allocs(body));
  record("reverse_compute_inline", {block});
}

}  // namespace tenon::tir
