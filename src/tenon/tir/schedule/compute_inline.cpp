// compute_inline: an element-wise block put into those that read it.
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

}  // namespace tenon::tir
