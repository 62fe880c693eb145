// SPDX-License-Identifier: Apache-2.0
// compute_inline: puts an element-wise block into the blocks that read it.
#include <algorithm>

#include "tenon/tir/schedule/coverage.h"
#include "tenon/tir/schedule/edit.h"

namespace tenon::tir {

namespace {

/// What the block reads must be the same at every later point of the program.
void check_not_overwritten(const Schedule& schedule, const Path& path) {
  const auto* realize = path.target().as<BlockRealize>();
  const Block& block = *realize->block;
  const std::vector<Ref<For>> around = loops_of(path);
  Substitution axes;
  for (size_t i = 0; i < block.iter_vars.size(); ++i)
    axes[block.iter_vars[i].var.get()] = realize->iter_values[i];
  arith::Analyzer analyzer;
  bind_path(path, analyzer);
  std::unordered_set<const Node*> before;
  for (const Ref<BlockRealize>& other : realizes_in(schedule.func()->body)) {
    if (other.get() == realize) break;
    before.insert(other.get());
  }
  for (const Ref<BufferRegion>& read : block.reads) {
    const std::vector<Range> box = substitute(read, axes)->region;
    for (const StoreSite& site : store_sites(schedule.func()->body, read->buffer)) {
      size_t shared = 0;
      while (shared < around.size() && shared < site.loops.size() &&
             site.loops[shared].var.same_as(around[shared]->loop_var))
        ++shared;
      // What runs before the block's nest is over. In a nest with it, all that it reads must have
      // been written in the iteration in which it runs.
      const bool is_before = site.realize && before.count(site.realize.get()) != 0;
      if (is_before && (shared == 0 || proves_written(site, shared, {box}, analyzer))) continue;
      illegal(block.origin, "block `{}` writes `{}`, which `{}` reads before",
              site.realize ? site.realize->block->name : "root", read->buffer->name, block.name);
    }
  }
}

}  // namespace

void Schedule::compute_inline(const BlockRV& block) {
  const Path path = path_of(block);
  check_outermost(path);
  const Ref<BlockRealize> realize = downcast<BlockRealize>(path.target());
  const BufferStore& store = element_wise_store(*realize);
  const Ref<Buffer> buffer = store.buffer;
  if (!is_intermediate(buffer))
    illegal(realize->origin, "block `{}` writes `{}`, which is a parameter; it cannot vanish",
            block.name, buffer->name);
  for (const Ref<Block>& other : other_blocks(root(), block))
    if (writes_buffer(*other, buffer))
      illegal(realize->origin, "block `{}` writes `{}` as well", other->name, buffer->name);
  check_only_blocks_use(root(), buffer, realize->origin);
  check_not_overwritten(*this, path);
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
      // Two bindings of one variable would be one value to whoever remembers what its uses are.
      return NodePtr(renew_definitions(substitute(store.value, *values)));
    };
    Block::Parts parts = user->block->parts();
    parts.body = rewrite(parts.body, replacer);
    if (parts.init) parts.init = rewrite(parts.init, replacer);
    Ref<Block> next = with_accesses(with_parts(user->block, std::move(parts)));
    if (gives_place_of(user->block, buffer) || reads_buffer(*next, buffer))
      illegal(realize->origin, "block `{}` reads `{}` in a way that cannot be replaced",
              reader.name, buffer->name);
    body = replace(at, make<BlockRealize>(user->iter_values, user->predicate, next, user->origin));
  }
  body = replace(find_block(body, block.name), Stmt());
  commit(drop_unused_allocs(body));
  record("compute_inline", {block});
}

}  // namespace tenon::tir
