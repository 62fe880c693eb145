// SPDX-License-Identifier: Apache-2.0
// compute_at and reverse_compute_at: move a block into the nest of its consumers or producers.
#include <algorithm>

#include "tenon/tir/schedule/coverage.h"
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
      // Ranges may depend on loops further out, which are wide already.
      VarRanges others;
      for (size_t i = 0; i < inner.size(); ++i) {
        Range& range = running[inner[i]->loop_var.get()];
        if (i > 0) others[inner[i - 1]->loop_var.get()] = running[inner[i - 1]->loop_var.get()];
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

/// A place that memory names: it may be read where the block that names it does not run.
bool reads_memory(const Range& range) {
  bool reads = false;
  for (const Expr& expr : {range.min, range.extent})
    walk<BufferLoad>(expr, [&](const BufferLoad&) { reads = true; });
  return reads;
}

/// The range of each axis of a block, and the condition on points outside the axis's domain.
struct AxisRanges {
  std::vector<Range> ranges;
  Expr predicate;
  std::vector<Range> uncut;  // the same, where nothing is done about what is outside the domain
};

/// What each axis has to run through so that indices from `lows` to `highs` (of a write or read of
/// the block) cover `box`. An axis that no index pins keeps its domain.
AxisRanges axes_for(const Block& block, const std::vector<Expr>& lows,
                    const std::vector<Expr>& highs, const std::vector<Range>& box,
                    arith::Analyzer& analyzer) {
  std::vector<Ref<Var>> vars;
  for (const IterVar& iter : block.iter_vars) vars.push_back(iter.var);
  AxisRanges out{domains_of(block), boolean(true), domains_of(block)};
  std::vector<bool> pinned(vars.size(), false);
  for (size_t d = 0; d < lows.size(); ++d) {
    if (reads_memory(box[d])) continue;
    const auto form = analyzer.linear(lows[d], vars);
    if (!form || !analyzer.proves_equal(lows[d], highs[d])) continue;
    std::optional<size_t> axis;
    bool simple = true;
    Expr rest = form->rest;
    for (size_t i = 0; i < vars.size(); ++i) {
      if (is_zero(form->coefficients[i])) continue;
      if (is_int(block.iter_vars[i].domain.extent, 1)) {  // it stands still
        rest = rest + form->coefficients[i] * block.iter_vars[i].domain.min;
        continue;
      }
      simple = simple && !axis && form->is_constant(i, 1);
      axis = i;
    }
    if (!axis || !simple || pinned[*axis]) continue;
    pinned[*axis] = true;
    const Range domain = block.iter_vars[*axis].domain;
    const Expr low = analyzer.simplify(box[d].min - rest);
    const Expr end = analyzer.simplify(low + box[d].extent);
    out.uncut[*axis] = {low, box[d].extent};
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
      out.uncut[*axis] = domain;
      continue;
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
  if (!runs_whole_domain(path))
    illegal(realize->origin, "the loops of block `{}` are not known to run all of its domain",
            realize->block->name);
  for (const Stmt& stmt : loop.stmts)
    if (stmt.get() == realize.get() || stmt.same_as(nest_path(path).target()))
      illegal(realize->origin, "loop `{}` is around block `{}` already",
              loop.target().as<For>()->loop_var->name, realize->block->name);
}

/// Each point of the block's domain must come up in some iteration of the loops of `at`.
void check_runs_all(const BlockRealize& realize, const Path& at, const AxisRanges& axes,
                    arith::Analyzer& analyzer) {
  const Block& block = *realize.block;
  const std::string& loop = at.target().as<For>()->loop_var->name;
  for (const Stmt& stmt : at.stmts)
    if (stmt.as<IfThenElse>() || stmt.as<While>())
      illegal(realize.origin, "loop `{}` is under a condition; block `{}` is not", loop,
              block.name);
  // A reduction that is started anew each time may be made again.
  const bool counts = block.init ? std::any_of(block.writes.begin(), block.writes.end(),
                                               [&](const Ref<BufferRegion>& write) {
                                                 return reads_buffer(block, write->buffer);
                                               })
                                 : counts_runs(block);
  const Times times = counts ? Times::kOnce : Times::kAny;
  std::vector<arith::Iterator> loops;
  for (const Ref<For>& l : loops_of(at)) loops.push_back({l->loop_var, l->min, l->extent});
  std::vector<Expr> values;
  std::vector<Range> domains;
  for (size_t i = 0; i < axes.uncut.size(); ++i) {
    const IterVar& iter = block.iter_vars[i];
    if (same_range(axes.uncut[i], iter.domain, analyzer)) continue;
    if (iter.kind != IterKind::kSpatial)
      illegal(realize.origin,
              "one iteration of loop `{}` gives a part of axis `{}` only, over which block `{}` "
              "reduces",
              loop, iter.var->name, block.name);
    const Ref<Var> inside = var("inside", iter.var->dtype);
    loops.push_back({inside, zero_of(axes.uncut[i].min), axes.uncut[i].extent});
    values.push_back(axes.uncut[i].min + Expr(inside));
    domains.push_back(iter.domain);
  }
  const auto scope = analyzer.enter();
  const auto run = exact_box(values, loops, {}, {}, times, analyzer);
  bool all = run.has_value();
  for (size_t i = 0; all && i < domains.size(); ++i)
    all = analyzer.proves_less_equal((*run)[i].min, domains[i].min) &&
          analyzer.proves_less_equal(domains[i].min + domains[i].extent, (*run)[i].end);
  if (!all)
    illegal(realize.origin,
            "below loop `{}` block `{}` is not known to run {} at each point of its domain", loop,
            block.name, times == Times::kOnce ? "exactly once" : "at least once");
}

/// Whether all that a block reads of `buffer` are the elements that it writes, one by one, as where
/// it adds to them.
bool reads_what_it_writes(const Block& block, const Ref<Buffer>& buffer) {
  const BufferStore* store = only_store(block);
  if (!store || !store->buffer.same_as(buffer)) return false;
  bool same = true;
  walk<BufferLoad>(store->value, [&](const BufferLoad& load) {
    if (!load.buffer.same_as(buffer)) return;
    for (size_t d = 0; d < load.indices.size(); ++d)
      same = same && structural_equal(load.indices[d], store->indices[d]);
  });
  return same && !block.init;
}

/// All that the block reads in an iteration of the loops of `at` must be written by then.
void check_inputs_are_there(const Stmt& root, const BlockRealize& realize, const Path& at,
                            const AxisRanges& axes, arith::Analyzer& analyzer) {
  const Block& block = *realize.block;
  const std::vector<Ref<For>> outer = loops_of(at);
  VarRanges cut, domains;
  for (size_t i = 0; i < block.iter_vars.size(); ++i) {
    cut[block.iter_vars[i].var.get()] = axes.uncut[i];
    domains[block.iter_vars[i].var.get()] = block.iter_vars[i].domain;
  }
  for (const Ref<BufferRegion>& read : block.reads) {
    std::optional<std::vector<std::vector<Range>>> boxes;
    const bool own = reads_what_it_writes(block, read->buffer);
    for (const StoreSite& site : store_sites(root, read->buffer)) {
      if (site.realize && site.realize.get() == &realize) continue;
      if (own && site.realize && write_apart(realize, *site.realize, read->buffer, analyzer))
        continue;
      size_t shared = 0;
      while (shared < outer.size() && shared < site.loops.size() &&
             site.loops[shared].var.same_as(outer[shared]->loop_var))
        ++shared;
      if (shared == 0) continue;  // all of it is over, or has not begun
      if (!boxes) boxes = {relaxed(*read, cut, analyzer), relaxed(*read, domains, analyzer)};
      if (!proves_written(site, shared, *boxes, analyzer))
        illegal(realize.origin,
                "below loop `{}` block `{}` is not known to read only what block `{}` has written "
                "to `{}` by then",
                outer.back()->loop_var->name, block.name,
                site.realize ? site.realize->block->name : "root", read->buffer->name);
    }
  }
}

/// Nobody else in the nest of `at` may use what the block writes: some of it would be earlier now.
void check_keeps_apart(const Stmt& root, const BlockRealize& realize, const Path& at,
                       arith::Analyzer& analyzer) {
  const auto scope = analyzer.enter();
  const Block& block = *realize.block;
  const Path outermost = find_loop(root, loops_of(at).front()->loop_var.get());
  for (const Ref<BlockRealize>& other : outermost_realizes_in(outermost.target())) {
    for (const Ref<BufferRegion>& write : block.writes) {
      const Block& o = *other->block;
      const bool reads =
          reads_buffer(o, write->buffer) && !reads_what_it_writes(o, write->buffer) &&
          !proves_disjoint(whole_region(realize, block.writes, write->buffer, analyzer),
                           whole_region(*other, o.reads, write->buffer, analyzer), analyzer);
      if (reads || (writes_buffer(o, write->buffer) &&
                    !write_apart(realize, *other, write->buffer, analyzer)))
        illegal(realize.origin, "blocks `{}` and `{}` both use `{}`; they keep their order",
                block.name, o.name, write->buffer->name);
    }
  }
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
  for (const auto* regions : {&realize->block->reads, &realize->block->writes})
    for (const Ref<BufferRegion>& region : *regions)
      check_only_blocks_use(root(), region->buffer, realize->origin);
  if (realize->block->writes.size() != 1)
    illegal(realize->origin, "block `{}` writes {} buffers; expected one", block.name,
            realize->block->writes.size());
  const Ref<BufferRegion> write = realize->block->writes[0];
  if (!is_intermediate(write->buffer))
    illegal(realize->origin,
            "block `{}` writes `{}`, which is a parameter; all of it has to be written", block.name,
            write->buffer->name);
  if (reads_buffer(*realize->block, write->buffer))
    illegal(realize->origin, "block `{}` reads what it writes to `{}`; it cannot run twice",
            block.name, write->buffer->name);
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
  for (const auto* regions : {&realize->block->reads, &realize->block->writes})
    for (const Ref<BufferRegion>& region : *regions)
      check_only_blocks_use(root(), region->buffer, realize->origin);
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
  if (order.at(block.name) < place)
    illegal(realize->origin, "block `{}` comes before loop `{}`", block.name, node->loop_var->name);
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
  AxisRanges axes{domains_of(*realize->block), boolean(true), domains_of(*realize->block)};
  for (const Ref<BufferRegion>& read : produced) {
    const auto box = region_below(at, read->buffer, false, analyzer);
    std::vector<Expr> lows, highs;
    for (const Range& range : read->region) {
      lows.push_back(range.min);
      highs.push_back(range.min + range.extent - 1);
    }
    const AxisRanges some = axes_for(*realize->block, lows, highs, *box, analyzer);
    for (size_t i = 0; i < some.ranges.size(); ++i) {
      if (same_range(some.uncut[i], realize->block->iter_vars[i].domain, analyzer)) continue;
      axes.ranges[i] = some.ranges[i];
      axes.uncut[i] = some.uncut[i];
    }
    axes.predicate = logical_and(axes.predicate, some.predicate);
  }
  check_inputs_are_there(root(), *realize, at, axes, analyzer);
  check_runs_all(*realize, at, axes, analyzer);
  check_keeps_apart(root(), *realize, at, analyzer);
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
