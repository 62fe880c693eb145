// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/schedule/edit.h"

#include <algorithm>

#include "tenon/support/names.h"
#include "tenon/tir/analysis/pipeline.h"
#include "tenon/tir/compute.h"
#include "tenon/tir/effects.h"

namespace tenon::tir {

Ref<Block> with_parts(const Ref<Block>& block, Block::Parts parts) {
  return make<Block>(std::move(parts), block->origin);
}

Ref<BlockRealize> with_name(const Ref<BlockRealize>& realize, const std::string& name) {
  Block::Parts parts = realize->block->parts();
  parts.name = name;
  return make<BlockRealize>(realize->iter_values, realize->predicate,
                            with_parts(realize->block, std::move(parts)), realize->origin);
}

bool reads_buffer(const Block& block, const Ref<Buffer>& buffer) {
  return std::any_of(block.reads.begin(), block.reads.end(),
                     [&](const auto& region) { return region->buffer.same_as(buffer); });
}
bool writes_buffer(const Block& block, const Ref<Buffer>& buffer) {
  return std::any_of(block.writes.begin(), block.writes.end(),
                     [&](const auto& region) { return region->buffer.same_as(buffer); });
}
bool reads_buffer(const Stmt& stmt, const Ref<Buffer>& buffer) {
  for (const auto& realize : realizes_in(stmt))
    if (reads_buffer(*realize->block, buffer)) return true;
  return false;
}
bool writes_buffer(const Stmt& stmt, const Ref<Buffer>& buffer) {
  for (const auto& realize : realizes_in(stmt))
    if (writes_buffer(*realize->block, buffer)) return true;
  return false;
}

bool gives_place_of(const NodePtr& node, const Ref<Buffer>& buffer) {
  bool found = false;
  walk<Call>(node, [&](const Call& call) {
    const BufferLoad* place = place_given_to(call);
    found = found || (place && place->buffer.same_as(buffer));
  });
  return found;
}

static bool is_used_outside_blocks(const Stmt& root, const Ref<Buffer>& buffer) {
  const auto* whole = root.as<BlockRealize>();
  bool found = false;
  walk_if(whole ? whole->block->body : root, [&](const NodePtr& node) {
    if (node.as<BlockRealize>()) return false;
    const auto* load = node.as<BufferLoad>();
    const auto* store = node.as<BufferStore>();
    const auto* region = node.as<BufferRegion>();
    found = found || (load && load->buffer.same_as(buffer)) ||
            (store && store->buffer.same_as(buffer)) || (region && region->buffer.same_as(buffer));
    return !found;
  });
  return found;
}

void check_only_blocks_use(const Stmt& root, const Ref<Buffer>& buffer, const Origin& origin) {
  if (is_used_outside_blocks(root, buffer))
    illegal(origin, "`{}` is used outside of blocks too; expected uses in blocks alone",
            buffer->name);
}

std::vector<Ref<Block>> other_blocks(const Stmt& root, const BlockRV& block) {
  std::vector<Ref<Block>> out;
  for (const Ref<BlockRealize>& realize : realizes_in(root))
    if (realize.get() != root.get() && realize->block->name != block.name)
      out.push_back(realize->block);
  return out;
}

const BufferStore* only_store(const Block& block) { return block.body.as<BufferStore>(); }

Ref<Block> with_simplified_body(const Ref<Block>& block) {
  bool chooses = false;
  walk(block->body, [&](const NodePtr& node) {
    const auto* call = node.as<Call>();
    chooses = chooses || node.as<Select>() || (call && call->is(IntrinsicId::kIfThenElse));
  });
  if (!chooses) return block;
  arith::Analyzer analyzer;
  for (const IterVar& iter : block->iter_vars) analyzer.bind(iter.var, iter.domain);
  Block::Parts parts = block->parts();
  parts.body = rewrite(parts.body, [&](const NodePtr& node) -> std::optional<NodePtr> {
    if (const auto* call = node.as<Call>(); call && call->is(IntrinsicId::kIfThenElse)) {
      const Expr condition = analyzer.simplify(call->arg(0));
      if (const auto known = as_int(condition)) return NodePtr(call->arg(*known ? 1 : 2));
      return NodePtr(if_then_else(condition, call->arg(1), call->arg(2)));
    }
    if (const auto* choice = node.as<Select>(); choice && choice->condition->dtype == kBool) {
      const auto known = as_int(analyzer.simplify(choice->condition));
      if (known) return NodePtr(*known ? choice->true_value : choice->false_value);
    }
    return std::nullopt;
  });
  return with_accesses(with_parts(block, std::move(parts)));
}

const BufferStore& element_wise_store(const BlockRealize& realize) {
  const Block& block = *realize.block;
  const BufferStore* store = only_store(block);
  if (!is_spatial(block) || !store || !block.match_buffers.empty() || !block.alloc_buffers.empty())
    illegal(block.origin, "block `{}` is not element-wise: expected spatial axes and one store",
            block.name);
  if (!is_int(realize.predicate, 1))
    illegal(block.origin, "block `{}` runs under a predicate; expected none", block.name);
  return *store;
}

bool is_spatial(const Block& block) {
  return !block.init && std::all_of(block.iter_vars.begin(), block.iter_vars.end(),
                                    [](const IterVar& i) { return i.kind == IterKind::kSpatial; });
}
static bool has_reduce_axes(const Block& block) {
  bool reduces = false;
  for (const IterVar& iter : block.iter_vars) {
    if (iter.kind != IterKind::kSpatial && iter.kind != IterKind::kReduce) return false;
    reduces = reduces || iter.kind == IterKind::kReduce;
  }
  return reduces;
}

bool is_reduction(const Block& block) { return block.init && has_reduce_axes(block); }

const BufferStore* accumulating_store(const Block& block) {
  if (block.init || !has_reduce_axes(block)) return nullptr;
  const BufferStore* store = only_store(block);
  return store && combiner_of(*store) ? store : nullptr;
}

std::vector<Range> domains_of(const Block& block) {
  std::vector<Range> out;
  for (const IterVar& iter : block.iter_vars) out.push_back(iter.domain);
  return out;
}

Nest make_nest(const Ref<Block>& block, const std::vector<Range>& domains, Expr predicate) {
  Nest nest;
  std::vector<Expr> values, extents;
  for (size_t i = 0; i < domains.size(); ++i) {
    const Ref<Var>& axis = block->iter_vars[i].var;
    if (is_int(domains[i].extent, 1)) {
      values.push_back(domains[i].min);
      continue;
    }
    std::string name = axis->name;
    if (name.size() > 1 && name[0] == 'v') name = name.substr(1);
    Ref<Var> loop = var(name, axis->dtype);
    values.push_back(domains[i].min + Expr(loop));
    extents.push_back(domains[i].extent);
    nest.loops.push_back(loop);
  }
  if (!predicate) predicate = boolean(true);
  Substitution names;
  nest.stmt = make<BlockRealize>(std::move(values), std::move(predicate), block, block->origin);
  nest.stmt = tir::nest(nest.loops, extents, nest.stmt);
  return nest;
}

Path nest_path(const Path& path) {
  size_t start = 0;
  for (size_t i = 0; i + 1 < path.stmts.size(); ++i)
    if (path.stmts[i].as<BlockRealize>()) start = i + 1;
  // A sequence directly below the block is its list, not part of the nest.
  if (start + 1 < path.stmts.size() && path.stmts[start].as<Seq>()) ++start;
  Path out;
  out.stmts.assign(path.stmts.begin(), path.stmts.begin() + static_cast<std::ptrdiff_t>(start) + 1);
  return out;
}

bool is_alone(const Path& path) {
  const size_t start = nest_path(path).stmts.size() - 1;
  for (size_t i = start; i + 1 < path.stmts.size(); ++i)
    if (!path.stmts[i].as<For>()) return false;
  return true;
}

static Stmt insert(const Path& anchor, const Stmt& stmt, bool before) {
  std::vector<Stmt> items{anchor.target()};
  items.insert(before ? items.begin() : items.end(), stmt);
  return replace(anchor, seq(std::move(items)));
}
Stmt insert_before(const Path& anchor, const Stmt& stmt) { return insert(anchor, stmt, true); }
Stmt insert_after(const Path& anchor, const Stmt& stmt) { return insert(anchor, stmt, false); }

static Stmt with_allocs(const Stmt& root, std::vector<Ref<Buffer>> allocs) {
  const auto* realize = root.as<BlockRealize>();
  Block::Parts parts = realize->block->parts();
  parts.alloc_buffers = std::move(allocs);
  return make<BlockRealize>(realize->iter_values, realize->predicate,
                            with_parts(realize->block, std::move(parts)), realize->origin);
}

Stmt add_alloc(const Stmt& root, const Ref<Buffer>& buffer) {
  std::vector<Ref<Buffer>> allocs = root.as<BlockRealize>()->block->alloc_buffers;
  allocs.push_back(buffer);
  return with_allocs(root, std::move(allocs));
}

Stmt drop_unused_allocs(const Stmt& root) {
  const auto* realize = root.as<BlockRealize>();
  std::unordered_set<const Node*> used;
  walk(realize->block->body, [&](const NodePtr& node) {
    if (node.as<Buffer>()) used.insert(node.get());
  });
  std::vector<Ref<Buffer>> allocs;
  for (const Ref<Buffer>& buffer : realize->block->alloc_buffers)
    if (used.count(buffer.get())) allocs.push_back(buffer);
  if (allocs.size() == realize->block->alloc_buffers.size()) return root;
  return with_allocs(root, std::move(allocs));
}

std::string unique_buffer_name(const Stmt& root, const PrimFunc& function,
                               const std::string& name) {
  NameSupply names;
  for (const Ref<Buffer>& buffer : function.buffers)
    if (buffer) names.reserve(buffer->name);
  for (const Ref<Buffer>& buffer : root.as<BlockRealize>()->block->alloc_buffers)
    names.reserve(buffer->name);
  return names.take(name);
}

void check_outermost(const Path& path) {
  for (size_t i = 1; i + 1 < path.stmts.size(); ++i) {
    const auto* outer = path.stmts[i].as<BlockRealize>();
    if (!outer) continue;
    const auto* block = path.target().as<BlockRealize>();
    const auto* loop = path.target().as<For>();
    illegal(path.target()->origin,
            "{} `{}` is inside block `{}`; expected it directly below the "
            "root block",
            block ? "block" : "loop",
            block  ? block->block->name
            : loop ? loop->loop_var->name
                   : "?",
            outer->block->name);
  }
}

void check_no_pipeline(const For& loop, std::string_view what) {
  if (loop.annotations.contains(kPipelineStage))
    illegal(loop.origin, "loop `{}` is a software pipeline; it cannot be {}", loop.loop_var->name,
            what);
}

Expr at_first_iteration(const std::vector<Ref<For>>& loops, Substitution& first) {
  Expr all = boolean(true);
  for (const Ref<For>& loop : loops) {
    if (first.count(loop->loop_var.get())) continue;
    const Expr extent = substitute(loop->extent, first);
    all = logical_and(all, zero_of(extent) < extent);
    first[loop->loop_var.get()] = substitute(loop->min, first);
  }
  return all;
}

bool owns_its_writes(const Schedule& schedule, const Block& block) {
  const Stmt& root = schedule.func()->body;
  return std::all_of(block.writes.begin(), block.writes.end(), [&](const auto& write) {
    const Ref<Buffer>& buffer = write->buffer;
    if (is_used_outside_blocks(root, buffer)) return false;
    for (const Ref<Block>& other : other_blocks(root, BlockRV{block.name}))
      if (writes_buffer(*other, buffer) ||
          (!schedule.is_intermediate(buffer) && reads_buffer(*other, buffer)))
        return false;
    return true;
  });
}

bool is_zero(const Expr& expr) { return is_int(expr, 0); }

std::optional<Substitution> solve_axes(const std::vector<Expr>& patterns,
                                       const std::vector<IterVar>& iters,
                                       const std::vector<Expr>& values, arith::Analyzer& analyzer) {
  check(patterns.size() == values.size(), "another number of values than indices");
  std::vector<Ref<Var>> vars;
  for (const IterVar& iter : iters) vars.push_back(iter.var);
  Substitution solution;
  for (size_t p = 0; p < patterns.size(); ++p) {
    const auto form = analyzer.linear(patterns[p], vars);
    if (!form) return std::nullopt;
    struct Digit {
      size_t axis;
      Expr coefficient;
    };
    std::vector<Digit> digits;
    Expr rest = form->rest;
    for (size_t i = 0; i < iters.size(); ++i) {
      if (is_zero(form->coefficients[i])) continue;
      // An axis that stands still belongs to the constant.
      rest = rest + form->coefficients[i] * iters[i].domain.min;
      if (is_int(iters[i].domain.extent, 1)) continue;
      if (solution.count(iters[i].var.get())) return std::nullopt;
      digits.push_back({i, form->coefficients[i]});
    }
    // A value that is an index of the same dimension fits its type.
    Expr value = tenon::cast(patterns[p]->dtype, values[p]) - rest;
    // From the least significant digit up: each weight is the product of the extents below it.
    Expr weight = imm(patterns[p]->dtype, int64_t{1});
    std::vector<bool> used(digits.size(), false);
    for (size_t n = 0; n < digits.size(); ++n) {
      size_t next = digits.size();
      for (size_t d = 0; d < digits.size() && next == digits.size(); ++d)
        if (!used[d] && analyzer.proves_equal(digits[d].coefficient, weight)) next = d;
      if (next == digits.size()) return std::nullopt;
      used[next] = true;
      const IterVar& iter = iters[digits[next].axis];
      Expr digit = floordiv(value, weight);
      if (n + 1 < digits.size()) digit = floormod(digit, iter.domain.extent);
      solution[iter.var.get()] =
          analyzer.simplify(tenon::cast(iter.var->dtype, digit + iter.domain.min));
      weight = weight * iter.domain.extent;
    }
  }
  for (const IterVar& iter : iters) {
    if (solution.count(iter.var.get())) continue;
    if (!is_int(iter.domain.extent, 1)) return std::nullopt;
    solution[iter.var.get()] = iter.domain.min;
  }
  return solution;
}

void reserve_block_names(const Stmt& root, NameSupply& names) {
  for (const Ref<BlockRealize>& realize : realizes_in(root)) names.reserve(realize->block->name);
}

Stmt with_unique_block_names(const Stmt& root, NameSupply& names) {
  Stmt out = root;
  for (const Stmt& child : children_of(root))
    out = with_child(out, child, with_unique_block_names(child, names));
  const auto* realize = out.as<BlockRealize>();
  if (!realize) return out;
  const std::string& old = realize->block->name;
  const std::string name = names.take(old.empty() ? "block" : old);
  return name == old ? out : with_name(ref_to(realize), name);
}

}  // namespace tenon::tir
