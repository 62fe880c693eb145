// compute_at and reverse_compute_at: moving a block into the nest of those that it works with.
#include <algorithm>

#include "tenon/tir/schedule/edit.h"

namespace tenon::tir {

namespace {

/// The box of `buffer` that blocks below `loop` read (or write) while one iteration of it runs.
std::optional<std::vector<Range>> region_below(const Path& loop, const Ref<Buffer>& buffer,
                                               bool of_reads, arith::Analyzer& analyzer) {
  std::optional<std::vector<Range>> box;
  const auto* node = loop.target().as<For>();
  for (const Ref<BlockRealize>& realize : outermost_realizes_in(node->body)) {
    const auto& list = of_reads ? realize->block->reads : realize->block->writes;
    for (const Ref<BufferRegion>& region : list) {
      if (!region->buffer.same_as(buffer)) continue;
      const Path path =
          find_path(loop.target(), [&](const Stmt& stmt) { return stmt.get() == realize.get(); });
      std::vector<Ref<For>> inner = loops_of(path);
      inner.erase(inner.begin());  // `loop` itself stands still
      VarRanges running = ranges_of(inner);
      Substitution axes;
      for (size_t i = 0; i < realize->iter_values.size(); ++i)
        axes[realize->block->iter_vars[i].var.get()] = realize->iter_values[i];
      for (const Ref<For>& l : inner) analyzer.bind(l->loop_var, l->min, l->extent);
      const auto bound = substitute(region, axes);
      // Inner extents may depend on loops between; widen those first.
      for (size_t i = inner.size(); i-- > 0;) {
        Range& range = running[inner[i]->loop_var.get()];
        VarRanges others(running);
        others.erase(inner[i]->loop_var.get());
        const auto high = value_range(range.min + range.extent - 1, others, analyzer);
        const auto low = value_range(range.min, others, analyzer);
        if (low && high) range = {low->min, analyzer.simplify(high->max - low->min + 1)};
      }
      std::vector<Range> part = relaxed(*bound, running, analyzer);
      box = box ? hull(*box, part, analyzer) : part;
    }
  }
  return box;
}

/// What each axis has to run through so that `indices` (of a write or read of the block) cover
/// `box`. An axis that no index pins keeps its domain.
struct AxisRanges {
  std::vector<Range> ranges;
  Expr predicate;
};
AxisRanges axes_for(const Block& block, const std::vector<Expr>& lows,
                    const std::vector<Expr>& highs, const std::vector<Range>& box,
                    arith::Analyzer& analyzer) {
  std::vector<Ref<Var>> vars;
  for (const IterVar& iter : block.iter_vars) vars.push_back(iter.var);
  AxisRanges out{domains_of(block), boolean(true)};
  std::vector<bool> pinned(vars.size(), false);
  for (size_t d = 0; d < lows.size(); ++d) {
    const auto form = analyzer.linear(lows[d], vars);
    if (!form || !analyzer.proves_equal(lows[d], highs[d])) continue;
    std::optional<size_t> axis;
    bool simple = true;
    for (size_t i = 0; i < vars.size(); ++i) {
      if (is_zero(form->coefficients[i])) continue;
      if (is_int(block.iter_vars[i].domain.extent, 1) && axis) continue;
      simple = simple && !axis && form->is_constant(i, 1);
      axis = i;
    }
    if (!axis || !simple || pinned[*axis]) continue;
    pinned[*axis] = true;
    const Range domain = block.iter_vars[*axis].domain;
    const Expr low = analyzer.simplify(box[d].min - form->rest);
    const Expr end = analyzer.simplify(low + box[d].extent);
    const Expr domain_end = analyzer.simplify(domain.min + domain.extent);
    Range& range = out.ranges[*axis];
    const bool low_inside = analyzer.proves_less_equal(domain.min, low);
    const bool end_inside = analyzer.proves_less_equal(end, domain_end);
    if (low_inside && end_inside) {
      range = {low, box[d].extent};
      continue;
    }
    // What falls outside the domain is not run: the range is cut where it is cut by a constant, a
    // predicate does it elsewhere.
    if (analyzer.proves_less_equal(low, domain.min) &&
        analyzer.proves_less_equal(domain_end, end)) {
      continue;  // the whole domain
    }
    if (as_int(low) || as_int(end)) {
      const Expr first = low_inside ? low : analyzer.simplify(max(low, domain.min));
      const Expr last = end_inside ? end : analyzer.simplify(min(end, domain_end));
      range = {first, analyzer.simplify(last - first)};
      continue;
    }
    range = {low, box[d].extent};
    if (!low_inside) out.predicate = logical_and(out.predicate, domain.min <= Expr(vars[*axis]));
    if (!end_inside) out.predicate = logical_and(out.predicate, Expr(vars[*axis]) < domain_end);
  }
  return out;
}

/// The nest that runs `block` over `axes`, its predicate in terms of the new loops.
Stmt nest_for(const Ref<Block>& block, const AxisRanges& axes, arith::Analyzer& analyzer) {
  Nest nest = make_nest(block, axes.ranges);
  if (is_int(axes.predicate, 1)) return simplify_bindings(nest.stmt, analyzer);
  const Path path = find_block(nest.stmt, block->name);
  const auto* realize = path.target().as<BlockRealize>();
  Substitution values;
  for (size_t i = 0; i < realize->iter_values.size(); ++i)
    values[block->iter_vars[i].var.get()] = realize->iter_values[i];
  const Stmt guarded = make<BlockRealize>(realize->iter_values, substitute(axes.predicate, values),
                                          block, realize->origin);
  return simplify_bindings(replace(path, guarded), analyzer);
}

void check_moves(const Path& path, const Ref<BlockRealize>& realize, const Path& loop) {
  check_outermost(path);
  check_outermost(loop);
  if (!is_int(realize->predicate, 1))
    illegal(realize->origin, "block `{}` runs under a predicate; expected none to move it",
            realize->block->name);
  for (const IterVar& iter : realize->block->iter_vars)
    if (iter.kind != IterKind::kSpatial && iter.kind != IterKind::kReduce)
      illegal(realize->origin, "axis `{}` of block `{}` is neither spatial nor a reduction",
              iter.var->name, realize->block->name);
  if (!is_alone(path))
    illegal(realize->origin, "block `{}` shares its loops with others; it cannot be moved",
            realize->block->name);
  for (const Stmt& stmt : loop.stmts)
    if (stmt.get() == realize.get() || stmt.same_as(nest_path(path).target()))
      illegal(realize->origin, "loop `{}` is around block `{}` already",
              loop.target().as<For>()->loop_var->name, realize->block->name);
}

/// The position of each block in program order.
std::unordered_map<std::string, size_t> order_of(const Stmt& root) {
  std::unordered_map<std::string, size_t> order;
  for (const auto& realize : realizes_in(root)) order.emplace(realize->block->name, order.size());
  return order;
}

}  // namespace

void Schedule::compute_at(const BlockRV& block, const LoopRV& loop) {
  const Path path = path_of(block);
  const Ref<BlockRealize> realize = downcast<BlockRealize>(path.target());
  Path at = path_of(loop);
  check_moves(path, realize, at);
  if (realize->block->writes.size() != 1)
    illegal(realize->origin, "block `{}` writes {} buffers; expected one", block.name,
            realize->block->writes.size());
  const Ref<BufferRegion> write = realize->block->writes[0];
  if (!is_intermediate(write->buffer))
    illegal(realize->origin,
            "block `{}` writes `{}`, which is a parameter; all of it has to be written", block.name,
            write->buffer->name);
  const auto* node = at.target().as<For>();
  // Everyone who reads it must be below the loop, and come after what it reads itself.
  std::unordered_set<std::string> below;
  for (const auto& inner : realizes_in(node->body)) below.insert(inner->block->name);
  for (const BlockRV& other : consumers(block))
    if (!below.count(other.name))
      illegal(realize->origin, "block `{}` reads `{}` outside loop `{}`", other.name,
              write->buffer->name, node->loop_var->name);
  for (const BlockRV& other : blocks())
    if (!(other == block) && writes_buffer(*get(other), write->buffer))
      illegal(realize->origin, "block `{}` writes `{}` as well", other.name, write->buffer->name);
  const auto order = order_of(root());
  for (const BlockRV& other : producers(block))
    if (order.at(other.name) > order.at(block.name) || below.count(other.name))
      illegal(realize->origin, "block `{}` needs what `{}` writes below loop `{}`", block.name,
              other.name, node->loop_var->name);
  arith::Analyzer analyzer;
  bind_path(at, analyzer);
  const auto box = region_below(at, write->buffer, true, analyzer);
  if (!box)
    illegal(realize->origin, "nothing below loop `{}` reads `{}`", node->loop_var->name,
            write->buffer->name);
  std::vector<Expr> lows, highs;
  for (const Range& range : write->region) {
    lows.push_back(range.min);
    highs.push_back(range.min + range.extent - 1);
  }
  const Stmt nest =
      nest_for(realize->block, axes_for(*realize->block, lows, highs, *box, analyzer), analyzer);
  Stmt body = replace(nest_path(path), Stmt());
  at = find_loop(body, loop.var.get());
  node = at.target().as<For>();
  // Before the first of the loop's statements that reads it.
  std::vector<Stmt> items = stmts_of(node->body);
  auto first = std::find_if(items.begin(), items.end(),
                            [&](const Stmt& stmt) { return reads_buffer(stmt, write->buffer); });
  items.insert(first, nest);
  body = replace(at, with_child(at.target(), node->body, seq(std::move(items))));
  commit(body);
  record("compute_at", {block, loop});
}

void Schedule::reverse_compute_at(const BlockRV& block, const LoopRV& loop) {
  const Path path = path_of(block);
  const Ref<BlockRealize> realize = downcast<BlockRealize>(path.target());
  Path at = path_of(loop);
  check_moves(path, realize, at);
  const auto* node = at.target().as<For>();
  std::vector<Ref<For>> outer = loops_of(at);
  const std::vector<Ref<BlockRealize>> below = outermost_realizes_in(node->body);
  // Its producers below the loop must be through with their reductions in each iteration, and what
  // else it reads must be there before.
  std::vector<Ref<BufferRegion>> produced;
  for (const Ref<BufferRegion>& read : realize->block->reads) {
    bool made_below = false;
    for (const Ref<BlockRealize>& inner : below) {
      if (!writes_buffer(*inner->block, read->buffer)) continue;
      made_below = true;
      for (size_t a = 0; a < inner->iter_values.size(); ++a) {
        if (inner->block->iter_vars[a].kind == IterKind::kSpatial) continue;
        for (const Ref<For>& l : outer)
          if (uses_var(inner->iter_values[a], l->loop_var.get()))
            illegal(
                realize->origin,
                "loop `{}` runs over axis `{}` of block `{}`, so that `{}` is not complete inside",
                l->loop_var->name, inner->block->iter_vars[a].var->name, inner->block->name,
                read->buffer->name);
      }
    }
    if (made_below) produced.push_back(read);
  }
  if (produced.empty())
    illegal(realize->origin, "block `{}` reads nothing that is written below loop `{}`", block.name,
            node->loop_var->name);
  const auto order = order_of(root());
  const size_t place = order.at(below.back()->block->name);
  for (const BlockRV& other : blocks()) {
    const Ref<Block> o = get(other);
    const size_t position = order.at(other.name);
    if (other == block || position <= place || position > order.at(block.name)) continue;
    for (const auto& read : realize->block->reads)
      if (writes_buffer(*o, read->buffer))
        illegal(realize->origin, "block `{}` needs what `{}` writes after loop `{}`", block.name,
                other.name, node->loop_var->name);
    for (const auto& write : realize->block->writes)
      if (writes_buffer(*o, write->buffer) || reads_buffer(*o, write->buffer))
        illegal(realize->origin, "blocks `{}` and `{}` both use `{}`; they keep their order",
                block.name, other.name, write->buffer->name);
  }
  arith::Analyzer analyzer;
  bind_path(at, analyzer);
  AxisRanges axes{domains_of(*realize->block), boolean(true)};
  for (const Ref<BufferRegion>& read : produced) {
    const auto box = region_below(at, read->buffer, false, analyzer);
    std::vector<Expr> lows, highs;
    for (const Range& range : read->region) {
      lows.push_back(range.min);
      highs.push_back(range.min + range.extent - 1);
    }
    const AxisRanges some = axes_for(*realize->block, lows, highs, *box, analyzer);
    for (size_t i = 0; i < some.ranges.size(); ++i)
      if (!same_range(some.ranges[i], realize->block->iter_vars[i].domain, analyzer))
        axes.ranges[i] = some.ranges[i];
    axes.predicate = logical_and(axes.predicate, some.predicate);
  }
  // Each element must be made in one iteration: the iterations' parts add up to the domain.
  std::optional<int64_t> parts = 1, whole = 1;
  const auto times = [](std::optional<int64_t>& product, const Expr& extent) {
    const auto value = as_int(extent);
    product = product && value ? std::optional<int64_t>(*product * *value) : std::nullopt;
  };
  for (const Ref<For>& l : outer) times(parts, l->extent);
  for (const Range& range : axes.ranges) times(parts, range.extent);
  for (const IterVar& iter : realize->block->iter_vars) times(whole, iter.domain.extent);
  if (parts && whole && *parts < *whole)
    illegal(realize->origin,
            "below loop `{}` block `{}` would run {} times; its domain has {} points",
            node->loop_var->name, block.name, *parts, *whole);
  const Stmt nest = nest_for(realize->block, axes, analyzer);
  Stmt body = replace(nest_path(path), Stmt());
  at = find_loop(body, loop.var.get());
  node = at.target().as<For>();
  std::vector<Stmt> items = stmts_of(node->body);
  // After the last of the loop's statements that writes what it reads.
  size_t last = 0;
  for (size_t i = 0; i < items.size(); ++i)
    for (const auto& read : produced)
      if (writes_buffer(items[i], read->buffer)) last = i + 1;
  items.insert(items.begin() + static_cast<std::ptrdiff_t>(last), nest);
  commit(replace(at, with_child(at.target(), node->body, seq(std::move(items)))));
  record("reverse_compute_at", {block, loop});
}

}  // namespace tenon::tir
