// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/schedule/schedule.h"

#include "tenon/tir/schedule/closed_blocks.h"
#include "tenon/tir/schedule/edit.h"

namespace tenon::tir {

Schedule::Schedule(Ref<PrimFunc> function) : func_(std::move(function)) {
  if (!root_block(*func_))
    throw CompileError(kScheduleIllegal, func_->origin,
                       "the function has no root block; expected `with T.block(\"root\")`");
  const Ref<PrimFunc> closed = with_closed_blocks(func_);
  if (!closed)
    throw CompileError(
        kScheduleIllegal, func_->origin,
        "a block depends on a loop or a name outside of it; expected axes for these");
  func_ = closed;
  trace_.symbols = symbolic_vars(*func_);
  // Names address blocks, so no two may share one.
  NameSupply names;
  const Stmt body = with_unique_block_names(func_->body, names);
  if (!body.same_as(func_->body)) commit(body);
  opened_ = func_->body;
}

void Schedule::commit(Stmt body) { func_ = func_->with_body(std::move(body)); }

void Schedule::record(std::string name, std::vector<TraceValue> inputs,
                      std::vector<std::pair<std::string, AttrValue>> attrs,
                      std::vector<TraceValue> outputs) {
  for (const TraceValue& output : outputs)
    if (const auto* loop = std::get_if<LoopRV>(&output)) named_.insert(loop->var.get());
  trace_.add({std::move(name), std::move(inputs), std::move(attrs), std::move(outputs)});
}

std::string Schedule::unique_name(const std::string& name) const {
  NameSupply names;
  reserve_block_names(root(), names);
  return names.take(name);
}

Path Schedule::path_of(const LoopRV& loop) const {
  Path path = find_loop(root(), loop.var.get());
  if (!path) illegal({}, "loop `{}` is not in the function", loop.var ? loop.var->name : "?");
  return path;
}

Path Schedule::path_of(const BlockRV& block) const {
  Path path = find_block(root(), block.name);
  if (!path) illegal(func_->origin, "block `{}` is not in the function", block.name);
  return path;
}

BlockRV Schedule::get_block(const std::string& name) {
  path_of(BlockRV{name});
  record("get_block", {}, {{"name", name}}, {BlockRV{name}});
  return {name};
}

std::vector<BlockRV> Schedule::blocks() const {
  std::vector<BlockRV> out;
  for (const Ref<BlockRealize>& realize : realizes_in(root()))
    if (realize.get() != root().get()) out.push_back({realize->block->name});
  return out;
}

std::optional<AttrValue> Schedule::with_numbers(const AttrValue& value) const {
  if (const auto* list = value.as<AttrList>()) {
    AttrList out = *list;
    bool changes = false;
    for (AttrValue& item : out)
      if (auto known = with_numbers(item)) {
        item = std::move(*known);
        changes = true;
      }
    return changes ? std::optional<AttrValue>(out) : std::nullopt;
  }
  const auto* node = value.as<NodePtr>();
  const auto expr = node ? cast<ExprNode>(*node) : Expr();
  if (!expr) return std::nullopt;
  Substitution known;
  walk(expr, [&](const NodePtr& part) {
    const auto number = numbers_.find(part.get());
    if (number != numbers_.end()) known[part.get()] = int64(number->second.second);
  });
  if (known.empty()) return std::nullopt;
  const Expr result = arith::simplify(substitute(expr, known));
  if (const auto number = as_int(result)) return AttrValue(*number);
  return AttrValue(NodePtr(result));
}

bool Schedule::has_block(const std::string& name) const {
  return static_cast<bool>(find_block(root(), name));
}

std::vector<LoopRV> Schedule::get_loops(const BlockRV& block) {
  std::vector<LoopRV> out;
  std::vector<TraceValue> outputs;
  for (const Ref<For>& loop : loops_of(path_of(block))) {
    out.push_back({loop->loop_var});
    outputs.push_back(out.back());
  }
  record("get_loops", {block}, {}, std::move(outputs));
  return out;
}

Ref<BlockRealize> Schedule::realize(const BlockRV& block) const {
  return downcast<BlockRealize>(path_of(block).target());
}
Ref<Block> Schedule::get(const BlockRV& block) const { return realize(block)->block; }
Ref<For> Schedule::get(const LoopRV& loop) const { return downcast<For>(path_of(loop).target()); }

bool Schedule::is_intermediate(const Ref<Buffer>& buffer) const {
  for (const Ref<Buffer>& allocated : root_block(*func_)->alloc_buffers)
    if (allocated.same_as(buffer)) return true;
  return false;
}

std::vector<BlockRV> Schedule::producers(const BlockRV& block) const {
  const Ref<Block> self = get(block);
  std::vector<BlockRV> out;
  for (const Ref<Block>& other : other_blocks(root(), block))
    for (const auto& read : self->reads)
      if (writes_buffer(*other, read->buffer)) {
        out.push_back({other->name});
        break;
      }
  return out;
}

std::vector<BlockRV> Schedule::consumers(const BlockRV& block) const {
  const Ref<Block> self = get(block);
  std::vector<BlockRV> out;
  for (const Ref<Block>& other : other_blocks(root(), block))
    for (const auto& write : self->writes)
      if (reads_buffer(*other, write->buffer)) {
        out.push_back({other->name});
        break;
      }
  return out;
}

std::vector<BlockRV> Schedule::recorded(std::string name, TraceValue input,
                                        std::vector<BlockRV> found) {
  record(std::move(name), {std::move(input)}, {}, {found.begin(), found.end()});
  return found;
}

std::vector<BlockRV> Schedule::get_producers(const BlockRV& block) {
  return recorded("get_producers", block, producers(block));
}

std::vector<BlockRV> Schedule::get_consumers(const BlockRV& block) {
  return recorded("get_consumers", block, consumers(block));
}

static std::vector<BlockRV> blocks_below(const Stmt& stmt) {
  std::vector<BlockRV> out;
  for (const Ref<BlockRealize>& realize : outermost_realizes_in(stmt))
    out.push_back({realize->block->name});
  return out;
}

std::vector<BlockRV> Schedule::get_child_blocks(const BlockRV& block) {
  return recorded("get_child_blocks", block, blocks_below(get(block)->body));
}

std::vector<BlockRV> Schedule::get_child_blocks(const LoopRV& loop) {
  return recorded("get_child_blocks", loop, blocks_below(get(loop)->body));
}

}  // namespace tenon::tir
