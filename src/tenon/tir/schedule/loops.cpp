// SPDX-License-Identifier: Apache-2.0
// split, fuse, reorder, loop_partition, add_unit_loop and the kinds of loops.
#include <algorithm>

#include "tenon/tir/analysis/pipeline.h"
#include "tenon/tir/schedule/coverage.h"
#include "tenon/tir/schedule/edit.h"

namespace tenon::tir {

static AttrValue attr_of(const std::vector<Expr>& exprs) {
  AttrList list;
  for (const Expr& expr : exprs) {
    if (!expr) {
      list.push_back(AttrValue());
    } else if (const auto value = as_int(expr)) {
      list.push_back(AttrValue(*value));
    } else {
      list.push_back(AttrValue(NodePtr(expr)));
    }
  }
  return AttrValue(std::move(list));
}

/// `stmt` with its blocks under a further condition.
static Stmt with_predicate(const Stmt& stmt, const Expr& condition) {
  if (const auto* realize = stmt.as<BlockRealize>())
    return make<BlockRealize>(realize->iter_values, logical_and(realize->predicate, condition),
                              realize->block, realize->origin);
  Stmt out = stmt;
  for (const Stmt& child : children_of(stmt))
    out = with_child(out, child, with_predicate(child, condition));
  return out;
}

static std::string part_name(const std::string& base, size_t i) {
  return fmt::format("{}_{}", base, i);
}

static void check_independent(const Path& path, std::string_view what) {
  const auto* loop = path.target().as<For>();
  for (const Ref<BlockRealize>& realize : realizes_in(loop->body)) {
    for (size_t a = 0; a < realize->iter_values.size(); ++a) {
      if (realize->block->iter_vars[a].kind == IterKind::kSpatial) continue;
      if (uses_var(realize->iter_values[a], loop->loop_var.get()))
        illegal(
            loop->origin,
            "loop `{}` carries axis `{}` of block `{}`, which is no spatial one; it cannot be {}",
            loop->loop_var->name, realize->block->iter_vars[a].var->name, realize->block->name,
            what);
    }
  }
}

std::vector<LoopRV> Schedule::split(const LoopRV& loop, const std::vector<Expr>& factors) {
  const Path path = path_of(loop);
  const auto* node = path.target().as<For>();
  if (!is_zero(node->min))
    illegal(node->origin, "loop `{}` starts at {}; expected 0", node->loop_var->name,
            str(node->min));
  arith::Analyzer analyzer;
  bind_path(path, analyzer);
  const DType dtype = node->loop_var->dtype;
  std::vector<Expr> extents = factors;
  Expr known = imm(dtype, int64_t{1});
  std::optional<size_t> unknown;
  for (size_t i = 0; i < extents.size(); ++i) {
    if (!extents[i]) {
      if (unknown) illegal(node->origin, "two factors are left open; expected one at most");
      unknown = i;
      continue;
    }
    extents[i] = cast(dtype, extents[i]);
    if (!analyzer.proves_positive(extents[i]))
      illegal(node->origin, "factor {} of `{}` is not known to be positive", str(extents[i]),
              node->loop_var->name);
    known = known * extents[i];
  }
  if (unknown) extents[*unknown] = analyzer.simplify(ceildiv(node->extent, known));
  Expr total = known * (unknown ? extents[*unknown] : imm(dtype, int64_t{1}));
  // What follows from the extent by rounding up covers it.
  if (!unknown && !analyzer.proves_less_equal(node->extent, total))
    illegal(node->origin, "factors {} of `{}` cover {} iterations; expected at least {}",
            str(extents), node->loop_var->name, str(total), str(node->extent));
  std::vector<Ref<Var>> vars;
  Expr value;
  for (size_t i = 0; i < extents.size(); ++i) {
    vars.push_back(var(part_name(node->loop_var->name, i), dtype));
    value = i == 0 ? Expr(vars[0]) : value * extents[i] + Expr(vars[i]);
  }
  Stmt body = substitute(node->body, {{node->loop_var.get(), value}});
  if (!analyzer.proves_equal(node->extent, total))
    body = with_predicate(body, value < node->extent);
  for (size_t i = extents.size(); i-- > 0;)
    body = make<For>(vars[i], imm(dtype, int64_t{0}), extents[i],
                     i + 1 == extents.size() ? node->kind : ForKind::kSerial, body,
                     i == 0 ? node->annotations : Attrs(), node->origin);
  commit(replace(path, simplify_bindings(body, analyzer)));
  std::vector<LoopRV> out;
  std::vector<TraceValue> outputs;
  for (const Ref<Var>& v : vars) {
    out.push_back({v});
    outputs.push_back(LoopRV{v});
  }
  record("split", {loop}, {{"factors", attr_of(factors)}}, std::move(outputs));
  return out;
}

LoopRV Schedule::fuse(const std::vector<LoopRV>& loops) {
  if (loops.empty()) illegal(func_->origin, "no loops to fuse; expected at least one");
  const Path path = path_of(loops[0]);
  arith::Analyzer analyzer;
  bind_path(path, analyzer);
  std::vector<const For*> nodes;
  Stmt at = path.target();
  for (size_t i = 0; i < loops.size(); ++i) {
    const auto* node = at.as<For>();
    if (!node || !node->loop_var.same_as(loops[i].var))
      illegal(path.target()->origin, "loop `{}` is not directly inside `{}`; expected nested loops",
              loops[i].var->name, i ? loops[i - 1].var->name : "?");
    if (!is_zero(node->min))
      illegal(node->origin, "loop `{}` starts at {}; expected 0", node->loop_var->name,
              str(node->min));
    for (const For* outer : nodes)
      if (uses_var(node->extent, outer->loop_var.get()))
        illegal(node->origin, "the extent of `{}` depends on `{}`", node->loop_var->name,
                outer->loop_var->name);
    nodes.push_back(node);
    at = node->body;
  }
  // All of them become what the outermost is.
  if (nodes[0]->kind != ForKind::kSerial)
    for (const LoopRV& loop : loops)
      check_independent(path_of(loop), "fused into one that is not serial");
  const DType dtype = nodes[0]->loop_var->dtype;
  std::string name;
  Expr total = imm(dtype, int64_t{1});
  for (const For* node : nodes) {
    name += (name.empty() ? "" : "_") + node->loop_var->name;
    total = total * cast(dtype, node->extent);
  }
  if (name.size() > 40) name = nodes[0]->loop_var->name + "_fused";
  Ref<Var> fused = nodes.size() == 1 ? nodes[0]->loop_var : var(name + "_fused", dtype);
  Substitution values;
  Expr rest = fused;
  for (size_t i = nodes.size(); i-- > 0 && nodes.size() > 1;) {
    const Expr extent = cast(dtype, nodes[i]->extent);
    const Expr digit = i == 0 ? rest : floormod(rest, extent);
    values[nodes[i]->loop_var.get()] = cast(nodes[i]->loop_var->dtype, digit);
    rest = floordiv(rest, extent);
  }
  total = analyzer.simplify(total);
  Stmt body =
      make<For>(fused, imm(dtype, int64_t{0}), total, nodes[0]->kind,
                substitute(nodes.back()->body, values), nodes[0]->annotations, nodes[0]->origin);
  commit(replace(path, simplify_bindings(body, analyzer)));
  std::vector<TraceValue> inputs;
  for (const LoopRV& loop : loops) inputs.push_back(loop);
  record("fuse", std::move(inputs), {}, {LoopRV{fused}});
  return {fused};
}

namespace {

using Loops = std::vector<const For*>;  // outermost first

/// Whether those of the loops that `counts` says run in one order before and after.
bool keep_order(const Loops& before, const Loops& after,
                const std::function<bool(const For*)>& counts) {
  Loops a, b;
  std::copy_if(before.begin(), before.end(), std::back_inserter(a), counts);
  std::copy_if(after.begin(), after.end(), std::back_inserter(b), counts);
  return a == b;
}

/// The loops from the one at `outermost` in, without branches, until all of `wanted` are in.
Loops chain_of(const Path& outermost, const std::unordered_set<const Var*>& wanted) {
  Loops chain;
  size_t found = 0;
  Stmt at = outermost.target();
  while (const auto* node = at.as<For>()) {
    chain.push_back(node);
    found += wanted.count(node->loop_var.get());
    if (found == wanted.size()) return chain;
    at = node->body;
  }
  illegal(outermost.target()->origin,
          "the loops are not in one nest without branches; `{}` holds {} of {} of them",
          chain.empty() ? "?" : chain[0]->loop_var->name, found, wanted.size());
}

/// The chain with those of its loops that are `wanted` in the order of `loops`, at their places.
Loops reordered(const Loops& chain, const std::unordered_set<const Var*>& wanted,
                const std::vector<LoopRV>& loops) {
  Loops order;
  size_t next = 0;
  for (const For* node : chain) {
    if (!wanted.count(node->loop_var.get())) {
      order.push_back(node);
      continue;
    }
    const Var* take = loops[next++].var.get();
    order.push_back(*std::find_if(chain.begin(), chain.end(),
                                  [&](const For* n) { return n->loop_var.get() == take; }));
  }
  for (size_t i = 0; i < order.size(); ++i)
    for (size_t k = i; k < order.size(); ++k)
      if (uses_var(order[i]->extent, order[k]->loop_var.get()))
        illegal(order[i]->origin, "the extent of `{}` depends on `{}`, which would be inside it",
                order[i]->loop_var->name, order[k]->loop_var->name);
  return order;
}

/// Iterations of a scan, and of what is not understood, keep their order: that of all such axes of
/// a block together, which may be pieces of one.
void check_scans_keep_order(const BlockRealize& realize, const Loops& chain, const Loops& order) {
  const auto runs_in_order = [&](const For* node) {
    for (size_t a = 0; a < realize.iter_values.size(); ++a) {
      const IterKind kind = realize.block->iter_vars[a].kind;
      if ((kind == IterKind::kScan || kind == IterKind::kOpaque) &&
          uses_var(realize.iter_values[a], node->loop_var.get()))
        return true;
    }
    return false;
  };
  if (!keep_order(chain, order, runs_in_order))
    illegal(realize.origin, "the scan and opaque axes of block `{}` must run in order",
            realize.block->name);
}

/// Loops that carry a reduction and other axes too: its first step for an element comes first in
/// the order in which they were cut, and need not in another.
void check_starts_keep_order(const BlockRealize& realize, const Loops& chain, const Loops& order) {
  if (!realize.block->init) return;
  std::unordered_set<const For*> reduced, kept;
  const auto carriers = [&](size_t axis) {
    Loops out;
    for (const For* node : chain)
      if (uses_var(realize.iter_values[axis], node->loop_var.get())) out.push_back(node);
    return out;
  };
  const auto is_spatial_axis = [&](size_t axis) {
    return realize.block->iter_vars[axis].kind == IterKind::kSpatial;
  };
  for (size_t a = 0; a < realize.iter_values.size(); ++a)
    if (!is_spatial_axis(a))
      for (const For* node : carriers(a)) reduced.insert(node);
  for (size_t a = 0; a < realize.iter_values.size(); ++a) {
    if (!is_spatial_axis(a)) continue;
    const Loops loops = carriers(a);
    if (std::any_of(loops.begin(), loops.end(), [&](const For* n) { return reduced.count(n); }))
      kept.insert(loops.begin(), loops.end());
  }
  if (kept.empty()) return;
  kept.insert(reduced.begin(), reduced.end());
  if (!keep_order(chain, order, [&](const For* node) { return kept.count(node) != 0; }))
    illegal(realize.origin,
            "loops around block `{}` carry its reduction and other axes; they keep their order",
            realize.block->name);
}

}  // namespace

void Schedule::reorder(const std::vector<LoopRV>& loops) {
  if (loops.size() < 2) return;
  std::unordered_set<const Var*> wanted;
  for (const LoopRV& loop : loops)
    if (!wanted.insert(loop.var.get()).second)
      illegal(func_->origin, "loop `{}` is given twice", loop.var->name);
  // The outermost of them starts the chain.
  const Path path = find_path(root(), [&](const Stmt& stmt) {
    const auto* loop = stmt.as<For>();
    return loop && wanted.count(loop->loop_var.get());
  });
  if (!path) illegal(func_->origin, "none of the loops is in the function");
  const Loops chain = chain_of(path, wanted);
  const Loops order = reordered(chain, wanted, loops);
  Path innermost = path;
  for (size_t i = 1; i < chain.size(); ++i) innermost.stmts.push_back(chain[i - 1]->body);
  if (chain != order && !iterations_are_apart(root(), innermost))
    illegal(path.target()->origin,
            "blocks below loop `{}` use what others write in other iterations; these keep their "
            "order",
            chain.back()->loop_var->name);
  Stmt body = chain.back()->body;
  const auto blocks = realizes_in(body);
  for (const Ref<BlockRealize>& realize : blocks) check_scans_keep_order(*realize, chain, order);
  for (const Ref<BlockRealize>& realize : blocks) check_starts_keep_order(*realize, chain, order);
  for (size_t i = order.size(); i-- > 0;)
    body = make<For>(order[i]->loop_var, order[i]->min, order[i]->extent, order[i]->kind, body,
                     order[i]->annotations, order[i]->origin);
  commit(replace(path, body));
  std::vector<TraceValue> inputs;
  for (const LoopRV& loop : loops) inputs.push_back(loop);
  record("reorder", std::move(inputs));
}

namespace {

/// Cuts the spatial domains of blocks down to the values that their bindings take.
Stmt cut_domains(const Stmt& stmt, VarRanges loops, const VarRanges& outside,
                 arith::Analyzer& analyzer) {
  if (const auto* realize = stmt.as<BlockRealize>()) {
    // What never runs has no values to be cut down to.
    for (const auto& [var, range] : loops)
      if (const auto extent = as_int(range.extent); extent && *extent <= 0) return stmt;
    Block::Parts parts = realize->block->parts();
    bool changed = false;
    for (size_t a = 0; a < parts.iter_vars.size(); ++a) {
      IterVar& iter = parts.iter_vars[a];
      // The start of a reduction runs at the first point of its domain, which must stay.
      if (iter.kind != IterKind::kSpatial && (iter.kind != IterKind::kReduce || parts.init))
        continue;
      const auto range = value_range(realize->iter_values[a], loops, analyzer);
      if (!range) continue;
      bool inside = false;
      for (const auto& [var, unused] : outside)
        inside = inside || uses_var(range->min, var) || uses_var(range->max, var);
      if (inside) continue;
      const Range next{range->min, analyzer.simplify(range->max - range->min + 1)};
      if (!analyzer.proves_less_equal(iter.domain.min, next.min) ||
          !analyzer.proves_less_equal(next.min + next.extent, iter.domain.min + iter.domain.extent))
        continue;
      if (same_range(iter.domain, next, analyzer)) continue;
      iter.domain = next;
      changed = true;
    }
    if (!changed) return stmt;
    const Ref<Block> next = with_simplified_body(with_parts(realize->block, std::move(parts)));
    return make<BlockRealize>(realize->iter_values, realize->predicate, next, realize->origin);
  }
  if (const auto* loop = stmt.as<For>()) loops[loop->loop_var.get()] = {loop->min, loop->extent};
  Stmt out = stmt;
  for (const Stmt& child : children_of(stmt))
    out = with_child(out, child, cut_domains(child, loops, outside, analyzer));
  return out;
}

/// Null where no block is left whose predicate may hold.
Stmt without_dead_blocks(const Stmt& stmt) {
  if (const auto* realize = stmt.as<BlockRealize>())
    return is_int(realize->predicate, 0) ? Stmt() : stmt;
  if (const auto* list = stmt.as<Seq>()) {
    // Not one child after another: what is left of two statements is no sequence.
    std::vector<Stmt> items;
    for (const Stmt& item : list->stmts)
      if (Stmt next = without_dead_blocks(item)) items.push_back(std::move(next));
    return items.empty() ? Stmt() : seq(std::move(items));
  }
  Stmt out = stmt;
  for (const Stmt& child : children_of(stmt)) {
    out = with_child(out, child, without_dead_blocks(child));
    if (!out) return {};
  }
  return out;
}

}  // namespace

// No buffer that a kernel is given has a negative dimension: the runtime checks those of arguments, the program all others. Of
// `a // b + c` that says `a >= -c * b` too.
static void assume_sizes(const PrimFunc& function, arith::Analyzer& analyzer) {
  for (const Ref<Buffer>& buffer : function.buffers) {
    if (!buffer) continue;
    for (const Expr& dim : buffer->shape) {
      if (analyzer.proves_nonnegative(dim)) continue;
      analyzer.assume(dim >= imm(dim->dtype, int64_t{0}));
      walk<Binary>(dim, [&](const Binary& quotient) {
        if (quotient.op != BinaryOp::kFloorDiv) return;
        const auto divisor = as_int(quotient.rhs),
                   rest = as_int(analyzer.simplify(dim - Expr(&quotient)));
        if (divisor && *divisor > 0 && rest && std::abs(*rest) < (int64_t{1} << 20))
          analyzer.assume(quotient.lhs >= quotient.rhs * imm(dim->dtype, -*rest));
      });
    }
  }
}

// Memory that one loop uses is each iteration's own; that of several loops is shared by all.
static void check_no_own_memory(const PrimFunc& function, const Ref<For>& loop) {
  const std::vector<Ref<BlockRealize>> below = realizes_in(loop->body);
  const auto uses = [](const BlockRealize& realize, const Buffer* buffer) {
    const auto is_it = [&](const Ref<BufferRegion>& region) {
      return region->buffer.get() == buffer;
    };
    const Block& block = *realize.block;
    return std::any_of(block.reads.begin(), block.reads.end(), is_it) ||
           std::any_of(block.writes.begin(), block.writes.end(), is_it);
  };
  const auto users = [&](const std::vector<Ref<BlockRealize>>& blocks, const Buffer* buffer) {
    return std::count_if(blocks.begin(), blocks.end(),
                         [&](const auto& realize) { return uses(*realize, buffer); });
  };
  for (const Ref<BlockRealize>& writer : below)
    for (const Ref<BufferRegion>& region : writer->block->writes) {
      const Buffer* buffer = region->buffer.get();
      const auto is_it = [&](const Ref<Buffer>& one) { return one.get() == buffer; };
      // A parameter, or memory of a block below, of which each part gets its own.
      const bool is_given = std::any_of(function.buffers.begin(), function.buffers.end(), is_it) ||
                            std::any_of(below.begin(), below.end(), [&](const auto& realize) {
                              const std::vector<Ref<Buffer>>& own = realize->block->alloc_buffers;
                              return std::any_of(own.begin(), own.end(), is_it);
                            });
      if (is_given || users(below, buffer) < 2) continue;
      bool is_outside = false;
      walk_if(function.body, [&](const NodePtr& node) {
        if (node.get() == loop.get()) return false;
        if (const auto* load = node.as<BufferLoad>()) is_outside |= load->buffer.get() == buffer;
        if (const auto* store = node.as<BufferStore>()) is_outside |= store->buffer.get() == buffer;
        return true;
      });
      if (!is_outside)
        illegal(loop->origin,
                "each iteration of loop `{}` has buffer `{}` to itself; it cannot be partitioned",
                loop->loop_var->name, buffer->name);
    }
}

std::vector<LoopRV> Schedule::loop_partition(const LoopRV& loop, const std::vector<Expr>& points) {
  const Path path = path_of(loop);
  const Ref<For> node = downcast<For>(path.target());
  if (!is_zero(node->min))
    illegal(node->origin, "loop `{}` starts at {}; expected 0", node->loop_var->name,
            str(node->min));
  if (node->kind == ForKind::kParallel || node->kind == ForKind::kVectorized)
    check_no_own_memory(*func_, node);
  for (const Ref<BlockRealize>& realize : realizes_in(node->body))
    for (size_t a = 0; a < realize->iter_values.size(); ++a)
      if (realize->block->iter_vars[a].kind == IterKind::kReduce && realize->block->init &&
          uses_var(realize->iter_values[a], node->loop_var.get()))
        illegal(node->origin, "loop `{}` runs over the reduction of block `{}`; decompose it first",
                node->loop_var->name, realize->block->name);
  arith::Analyzer analyzer;
  bind_path(path, analyzer);
  assume_sizes(*func_, analyzer);
  std::vector<Expr> bounds{node->min};
  for (const Expr& point : points) bounds.push_back(cast(node->loop_var->dtype, point));
  bounds.push_back(node->extent);
  for (size_t i = 0; i + 1 < bounds.size(); ++i)
    if (!analyzer.proves_less_equal(bounds[i], bounds[i + 1]))
      illegal(node->origin, "loop `{}` is cut at {} and {}; expected growing points up to {}",
              node->loop_var->name, str(bounds[i]), str(bounds[i + 1]), str(node->extent));
  Path outer = path;
  outer.stmts.pop_back();
  const std::vector<Ref<For>> around = loops_of(path);
  VarRanges outer_loops = ranges_of({around.begin(), around.end() - 1});
  NameSupply names;
  reserve_block_names(root(), names);
  std::vector<Stmt> parts;
  std::vector<LoopRV> out;
  std::vector<TraceValue> outputs;
  for (size_t i = 0; i + 1 < bounds.size(); ++i) {
    const Ref<Var> part = var(part_name(node->loop_var->name, i), node->loop_var->dtype);
    Stmt body = substitute(node->body, {{node->loop_var.get(), bounds[i] + Expr(part)}});
    if (i > 0) body = with_unique_block_names(renew_definitions(body), names);
    const Expr extent = analyzer.simplify(bounds[i + 1] - bounds[i]);
    Stmt stmt = make<For>(part, imm(part->dtype, int64_t{0}), extent, node->kind, body,
                          node->annotations, node->origin);
    stmt = simplify_bindings(stmt, analyzer);
    // Loops around run too; what is cut down must not depend on them. Binding the loops inside is
    // the work of simplify_bindings.
    VarRanges loops = outer_loops;
    stmt = cut_domains(stmt, loops, outer_loops, analyzer);
    stmt = without_dead_blocks(stmt);
    if (stmt) parts.push_back(stmt);
    out.push_back({part});
    outputs.push_back(LoopRV{part});
  }
  commit(replace(path, seq(std::move(parts))));
  record("loop_partition", {loop}, {{"points", attr_of(points)}}, std::move(outputs));
  return out;
}

LoopRV Schedule::add_unit_loop(const BlockRV& block) {
  const Path path = path_of(block);
  const Ref<Var> unit = var("u");
  commit(replace(path, nest({unit}, {int64(1)}, path.target())));
  record("add_unit_loop", {block}, {}, {LoopRV{unit}});
  return {unit};
}

// ---- kinds of loops -----------------------------------------------------------------------------

static Stmt with_kind(const For& loop, ForKind kind) {
  return make<For>(loop.loop_var, loop.min, loop.extent, kind, loop.body, loop.annotations,
                   loop.origin);
}

static void check_apart(const Stmt& root, const Path& path, std::string_view what) {
  const auto* loop = path.target().as<For>();
  if (!iterations_are_apart(root, path))
    illegal(loop->origin,
            "blocks below loop `{}` use what others write in other iterations; it cannot be {}",
            loop->loop_var->name, what);
}

static void check_constant(const Path& path, std::string_view what) {
  const auto* loop = path.target().as<For>();
  if (!as_int(loop->extent))
    illegal(loop->origin, "loop `{}` has extent {}; expected a constant to be {}",
            loop->loop_var->name, str(loop->extent), what);
}

void Schedule::parallel(const LoopRV& loop) {
  const Path path = path_of(loop);
  check_no_pipeline(*path.target().as<For>(), "parallel");
  check_independent(path, "parallel");
  for (const Stmt& stmt : path.stmts)
    if (const auto* outer = stmt.as<For>(); outer && outer->kind == ForKind::kParallel)
      illegal(outer->origin, "loop `{}` is inside parallel loop `{}`", loop.var->name,
              outer->loop_var->name);
  check_apart(root(), path, "parallel");
  commit(replace(path, with_kind(*path.target().as<For>(), ForKind::kParallel)));
  record("parallel", {loop});
}

void Schedule::vectorize(const LoopRV& loop) {
  const Path path = path_of(loop);
  check_no_pipeline(*path.target().as<For>(), "vectorized");
  check_independent(path, "vectorized");
  check_constant(path, "vectorized");
  check_apart(root(), path, "vectorized");
  commit(replace(path, with_kind(*path.target().as<For>(), ForKind::kVectorized)));
  record("vectorize", {loop});
}

void Schedule::unroll(const LoopRV& loop) {
  const Path path = path_of(loop);
  check_no_pipeline(*path.target().as<For>(), "unrolled");
  check_constant(path, "unrolled");
  commit(replace(path, with_kind(*path.target().as<For>(), ForKind::kUnrolled)));
  record("unroll", {loop});
}

void Schedule::annotate(const LoopRV& loop, const std::string& key, AttrValue value) {
  const Path path = path_of(loop);
  const auto* node = path.target().as<For>();
  if (key == kPipelineStage && node->kind != ForKind::kSerial)
    illegal(node->origin, "loop `{}` is not serial; it cannot be a software pipeline",
            loop.var->name);
  commit(replace(path, make<For>(node->loop_var, node->min, node->extent, node->kind, node->body,
                                 node->annotations.with(key, value), node->origin)));
  record("annotate", {loop}, {{"ann_key", key}, {"ann_val", value}});
}

void Schedule::unannotate(const LoopRV& loop, const std::string& key) {
  const Path path = path_of(loop);
  const auto* node = path.target().as<For>();
  if (!node->annotations.contains(key))
    illegal(node->origin, "loop `{}` has no annotation `{}`", loop.var->name, key);
  commit(replace(path, make<For>(node->loop_var, node->min, node->extent, node->kind, node->body,
                                 node->annotations.without(key), node->origin)));
  record("unannotate", {loop}, {{"ann_key", key}});
}

static Stmt with_annotations(const Path& path, Attrs annotations) {
  const auto* realize = path.target().as<BlockRealize>();
  Block::Parts parts = realize->block->parts();
  parts.annotations = std::move(annotations);
  return replace(path,
                 make<BlockRealize>(realize->iter_values, realize->predicate,
                                    with_parts(realize->block, std::move(parts)), realize->origin));
}

void Schedule::annotate(const BlockRV& block, const std::string& key, AttrValue value) {
  const Path path = path_of(block);
  commit(with_annotations(path,
                          path.target().as<BlockRealize>()->block->annotations.with(key, value)));
  record("annotate", {block}, {{"ann_key", key}, {"ann_val", value}});
}

void Schedule::unannotate(const BlockRV& block, const std::string& key) {
  const Path path = path_of(block);
  commit(with_annotations(path, path.target().as<BlockRealize>()->block->annotations.without(key)));
  record("unannotate", {block}, {{"ann_key", key}});
}

}  // namespace tenon::tir
