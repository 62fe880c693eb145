// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/patterns/block_graph.h"

#include <algorithm>

#include "tenon/tir/analysis/tree.h"

namespace tenon::tir {

// Statements that give other names to memory, or to values, for what follows them.
static bool defines_for_others(const Stmt& stmt) {
  return stmt.as<DeclBuffer>() || stmt.as<Bind>() || stmt.as<AllocBuffer>() ||
         stmt.as<AllocConst>();
}

// What stands on `path`, from `first` on, with nothing beside it.
static Stmt alone_on(const Path& path, size_t first) {
  Stmt stmt = path.target();
  for (size_t i = path.stmts.size() - 1; i-- > first;)
    if (!path.stmts[i].as<Seq>()) stmt = with_child(path.stmts[i], path.stmts[i + 1], stmt);
  return stmt;
}

BlockGraph::BlockGraph(const PrimFunc& function, AxesOf axes) {
  const Block* root = root_block(function);
  if (!root)
    throw CompileError(kScheduleIllegal, function.origin,
                       "the function has no root block; expected `with T.block(\"root\")`");
  allocs_ = root->alloc_buffers;
  items_ = stmts_of(root->body);
  // The path to an item, which is where a block's own begins.
  std::vector<Stmt> prefix{function.body};
  if (root->body.as<Seq>()) prefix.push_back(root->body);
  for (size_t i = 0; i < items_.size(); ++i) {
    has_views_ |= defines_for_others(items_[i]);
    const std::vector<Ref<BlockRealize>> found = outermost_realizes_in(items_[i]);
    std::vector<size_t> members;
    for (const Ref<BlockRealize>& realize : found) {
      const Path inner =
          find_path(items_[i], [&](const Stmt& stmt) { return stmt.same_as(realize); });
      Path path{prefix};
      path.stmts.insert(path.stmts.end(), inner.stmts.begin(), inner.stmts.end());
      GraphBlock block;
      block.item = i;
      block.realize = realize;
      block.alone = alone_on(inner, 0);
      block.effects = effects_of(block.alone);
      block.definition = definition_of(path, axes, &block.why);
      members.push_back(blocks_.size());
      blocks_.push_back(std::move(block));
      paths_.push_back(std::move(path));
    }
    if (found.empty()) {
      GraphBlock block;
      block.item = i;
      block.alone = items_[i];
      block.effects = effects_of(items_[i]);
      block.why = "a statement outside of blocks";
      blocks_.push_back(std::move(block));
      paths_.push_back({});
    }
  }
  find_starts();
  for (size_t first = 0; first < blocks_.size();) {
    std::vector<size_t> members;
    for (size_t b = first; b < blocks_.size() && blocks_[b].item == blocks_[first].item; ++b)
      members.push_back(b);
    first += members.size();
    std::string problem = members.size() > 1 ? shared_loops_problem(members) : "";
    if (has_views_) problem = "the function has statements that name memory or values for others";
    if (problem.empty()) continue;
    for (const size_t b : members) {
      blocks_[b].definition.reset();
      blocks_[b].why = problem;
      blocks_[b].start.reset();
    }
  }
}

bool BlockGraph::is_intermediate(const Ref<Buffer>& buffer) const {
  return std::any_of(allocs_.begin(), allocs_.end(),
                     [&](const Ref<Buffer>& alloc) { return alloc.same_as(buffer); });
}

// ---- reductions that start in a block of their own ----------------------------------------------

// The loops that both are in, outermost first.
static std::vector<Ref<For>> shared_loops(const Path& a, const Path& b) {
  std::vector<Ref<For>> out;
  for (size_t i = 0; i < a.stmts.size() && i < b.stmts.size(); ++i) {
    if (!a.stmts[i].same_as(b.stmts[i])) break;
    if (const auto* loop = a.stmts[i].as<For>(); loop && !is_int(loop->extent, 1))
      out.push_back(ref_to(loop));
  }
  return out;
}

static bool carries_reduction(const BlockRealize& realize, const std::vector<Ref<For>>& loops) {
  for (size_t a = 0; a < realize.iter_values.size(); ++a)
    for (const Ref<For>& loop : loops)
      if (realize.block->iter_vars[a].kind == IterKind::kReduce &&
          uses_var(realize.iter_values[a], loop->loop_var.get()))
        return true;
  return false;
}

// What a block stores in one iteration of some loops around it: a box in terms of their variables.
static std::vector<Range> stored_in_an_iteration(const Path& path, size_t shared) {
  const auto& realize = *path.target().as<BlockRealize>();
  const auto* store = realize.block->body.as<BufferStore>();
  std::vector<Ref<For>> loops = loops_of(path);
  VarRanges running;
  arith::Analyzer analyzer;
  size_t outside = 0;
  for (const Ref<For>& loop : loops) {
    analyzer.bind(loop->loop_var, loop->min, loop->extent);
    const bool is_shared = !is_int(loop->extent, 1) && outside++ < shared;
    if (!is_shared) running[loop->loop_var.get()] = {loop->min, loop->extent};
  }
  Substitution axes;
  for (size_t a = 0; a < realize.iter_values.size(); ++a)
    axes[realize.block->iter_vars[a].var.get()] = realize.iter_values[a];
  std::vector<Expr> place;
  for (const Expr& index : store->indices)
    place.push_back(analyzer.simplify(substitute(index, axes)));
  std::vector<Range> box = relaxed(*BufferRegion::point(store->buffer, place), running, analyzer);
  // Iterations beyond the end, which a predicate leaves out, store nothing.
  for (size_t d = 0; d < box.size(); ++d)
    box[d].extent = analyzer.simplify(min(box[d].extent, store->buffer->shape[d] - box[d].min));
  return box;
}

bool BlockGraph::starts(const GraphBlock& start, const GraphBlock& update) const {
  if (!start.definition || start.definition->init || !update.definition) return false;
  const Definition& a = *start.definition;
  const Definition& b = *update.definition;
  if (a.reads_itself()) return false;
  if (std::any_of(a.axes.begin(), a.axes.end(),
                  [](const auto& axis) { return axis.kind == IterKind::kReduce; }))
    return false;
  // The same places.
  arith::Analyzer analyzer;
  for (size_t d = 0; d < b.place.size(); ++d) {
    const auto extent = [&](const Definition& definition) -> Expr {
      if (is_int(definition.place[d], 0)) return int64(1);
      for (const auto& axis : definition.axes)
        if (definition.place[d].same_as(axis.var)) return axis.extent;
      return {};
    };
    const Expr x = extent(a), y = extent(b);
    if (!x || !y || !analyzer.proves_equal(x, y)) return false;
  }
  // And in each iteration of loops around both, those that are updated in it.
  const Path& from = paths_[static_cast<size_t>(&start - blocks_.data())];
  const Path& to = paths_[static_cast<size_t>(&update - blocks_.data())];
  const std::vector<Ref<For>> loops = shared_loops(from, to);
  if (loops.empty()) return true;
  if (carries_reduction(*update.realize, loops)) return false;
  for (const Ref<For>& loop : loops) analyzer.bind(loop->loop_var, loop->min, loop->extent);
  const auto x = stored_in_an_iteration(from, loops.size());
  const auto y = stored_in_an_iteration(to, loops.size());
  for (size_t d = 0; d < x.size(); ++d)
    if (!same_range(x[d], y[d], analyzer)) return false;
  return true;
}

void BlockGraph::find_starts() {
  for (size_t u = 0; u < blocks_.size(); ++u) {
    GraphBlock& update = blocks_[u];
    if (!update.definition || !update.definition->reads_itself()) continue;
    // The last that touched it before.
    size_t s = u;
    while (s-- > 0)
      if (blocks_[s].effects.touches(update.definition->buffer)) break;
    if (s >= u || !starts(blocks_[s], update)) continue;
    const Definition& start = *blocks_[s].definition;
    Substitution axes;
    for (size_t d = 0; d < start.place.size(); ++d)
      if (start.place[d].as<Var>()) axes[start.place[d].get()] = update.definition->place[d];
    update.definition->init = substitute(start.value, axes);
    update.start = s;
  }
}

// ---- loops around several blocks ----------------------------------------------------------------

bool BlockGraph::is_start(size_t block) const {
  return std::any_of(blocks_.begin(), blocks_.end(),
                     [&](const GraphBlock& other) { return other.start == block; });
}

// Why the blocks of one item cannot be given loops of their own; empty where they can.
std::string BlockGraph::shared_loops_problem(const std::vector<size_t>& members) const {
  for (const size_t i : members)
    for (const size_t j : members) {
      if (j <= i) continue;
      const GraphBlock &a = blocks_[i], &b = blocks_[j];
      if (!a.effects.conflicts(b.effects)) continue;
      const std::vector<Ref<For>> loops = shared_loops(paths_[i], paths_[j]);
      if (loops.empty()) continue;
      const auto problem = [&](const char* words) {
        return fmt::format("blocks `{}` and `{}` share loops, and {}", a.realize->block->name,
                           b.realize->block->name, words);
      };
      if (b.start == i) continue;
      // The first is done with a place when the second reads it, which never writes it.
      if (!a.definition) return problem("not every instance of the first is seen to run once");
      if (b.effects.overwrites(a.effects))
        return problem("the second writes what the first reads or writes");
      if (carries_reduction(*a.realize, loops))
        return problem("the second reads what the first has not added up yet");
      size_t writers = 0;
      for (const GraphBlock& other : blocks_)
        writers += other.effects.writes_buffer(a.definition->buffer);
      const bool has_start = a.start || is_start(i);
      if (!is_intermediate(a.definition->buffer) || writers > (has_start ? 2U : 1U))
        return problem("others store where the first does");
    }
  return "";
}

std::optional<BlockGraph::Division> BlockGraph::divide(const std::set<size_t>& members) const {
  std::set<size_t> divided;
  for (const size_t m : members) divided.insert(blocks_[m].item);
  struct Part {
    Stmt stmt;
    Effects effects;
    bool is_member = false, is_before = false, is_after = false;
  };
  std::vector<Part> parts;
  for (size_t b = 0; b < blocks_.size(); ++b) {
    const GraphBlock& block = blocks_[b];
    const bool is_new = b == 0 || blocks_[b - 1].item != block.item;
    if (divided.count(block.item)) {
      parts.push_back({block.alone, block.effects, members.count(b) != 0});
    } else if (is_new) {
      parts.push_back({items_[block.item], block.effects});
    } else {
      parts.back().effects.add(block.effects);
    }
  }
  for (size_t i = parts.size(); i-- > 0;) {
    if (parts[i].is_member) continue;
    for (size_t j = i + 1; j < parts.size() && !parts[i].is_before; ++j)
      parts[i].is_before = (parts[j].is_member || parts[j].is_before) &&
                           parts[i].effects.conflicts(parts[j].effects);
  }
  bool has_after = false;
  for (size_t j = 0; j < parts.size(); ++j) {
    if (parts[j].is_member) continue;
    for (size_t i = 0; i < j && !parts[j].is_after; ++i)
      parts[j].is_after =
          (parts[i].is_member || parts[i].is_after) && parts[i].effects.conflicts(parts[j].effects);
    if (parts[j].is_before && parts[j].is_after) return std::nullopt;
    has_after |= parts[j].is_after;
  }
  // What could be on either side makes no side of its own.
  Division out;
  for (const Part& part : parts) {
    if (part.is_member) continue;
    (part.is_before || !has_after ? out.before : out.after).push_back(part.stmt);
  }
  return out;
}

}  // namespace tenon::tir
