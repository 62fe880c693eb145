// SPDX-License-Identifier: Apache-2.0
// Declares the memory pools that a program's workspace lies in.
#include <algorithm>
#include <limits>

#include "tenon/arith/analyzer.h"
#include "tenon/backend/c/codegen.h"
#include "tenon/tir/analysis/element_places.h"

namespace tenon::c_backend {

// The workspace is one pool, or several by the attribute `tenon.pools`: a list of
// [name, offset, capacity or -1].
void ModuleCodegen::find_pools() {
  if (!entry_.has_workspace) return;
  const AttrValue* pools = entry_.function->attrs.find("tenon.pools");
  const auto* list = pools ? pools->as<AttrList>() : nullptr;
  if (!list) {
    pools_.push_back(
        {"workspace", 0, entry_.workspace_bytes, std::nullopt, entry_.workspace_alignment});
    return;
  }
  Names names;
  for (const char* own : {"dims", "inputs", "outputs", "constants", "error", "code", "late"})
    names.reserve(own);
  for (const AttrValue& item : *list) {
    const auto* row = item.as<AttrList>();
    const auto* name = row && row->size() == 3 ? (*row)[0].as<std::string>() : nullptr;
    const auto* offset = name ? (*row)[1].as<int64_t>() : nullptr;
    const auto* capacity = name ? (*row)[2].as<int64_t>() : nullptr;
    if (!offset || !capacity)
      throw CompileError(kBadAttribute, entry_.function->origin,
                         "`tenon.pools` is no list of [name, offset, capacity]");
    pools_.push_back({names.take(*name), *offset, Expr(),
                      *capacity < 0 ? std::nullopt : std::optional(*capacity)});
  }
  bool ascends = !pools_.empty() && pools_[0].offset == 0;
  for (size_t i = 1; i < pools_.size(); ++i)
    ascends = ascends && pools_[i - 1].offset <= pools_[i].offset;
  const auto total = as_int(entry_.workspace_bytes);
  if (!ascends || (total && *total < pools_.back().offset))
    throw CompileError(kBadAttribute, entry_.function->origin,
                       "the offsets of `tenon.pools` do not ascend from 0 to at most the {} bytes "
                       "of the workspace",
                       str(entry_.workspace_bytes));
  for (size_t i = 0; i < pools_.size(); ++i) {
    const Expr end = i + 1 < pools_.size() ? int64(pools_[i + 1].offset) : entry_.workspace_bytes;
    pools_[i].bytes = end - pools_[i].offset;
  }
  check_pools();
  align_pools();
}

static std::optional<int64_t> end_of(const tir::Buffer& buffer, std::optional<int64_t> begin) {
  const auto count = as_int(arith::simplify(tir::span_of(buffer)));
  return begin && count ? std::optional(*begin + *count * buffer.dtype.bytes()) : std::nullopt;
}

// The workspace's place that a view shows; null where it shows something else.
static const tir::BufferLoad* place_in(const Ref<tir::Buffer>& workspace,
                                       const tir::DeclBuffer& view) {
  const auto* call = view.data.as<Call>();
  const auto* at =
      call && call->is(IntrinsicId::kAddressOf) ? call->args[0].as<tir::BufferLoad>() : nullptr;
  return at && at->buffer.same_as(workspace) && at->indices.size() == 1 ? at : nullptr;
}

// A pool's address is a multiple of what the buffers in it are.
void ModuleCodegen::align_pools() {
  walk<tir::DeclBuffer>(entry_.function->body, [&](const tir::DeclBuffer& view) {
    const auto* at = place_in(entry_.function->buffers.back(), view);
    if (!at) return;
    size_t p = pools_.size() - 1;
    if (const auto begin = as_int(at->indices[0]))
      while (p > 0 && *begin < pools_[p].offset) --p;
    pools_[p].alignment = std::max(pools_[p].alignment, view.buffer->alignment);
  });
  for (const PoolParameter& pool : pools_)
    if (pool.offset % pool.alignment != 0)
      throw CompileError(kBadAttribute, entry_.function->origin,
                         "pool `{}` begins at byte {}, and a buffer in it is aligned to {}",
                         pool.name, pool.offset, pool.alignment);
}

// Each pool is memory of its own: a buffer that began in one and ended in the next would end
// outside of what the caller gave. PlanMemory does not make such, a text may hold one.
void ModuleCodegen::check_pools() const {
  if (std::none_of(pools_.begin(), pools_.end(),
                   [&](const PoolParameter& pool) { return pool.capacity || pools_.size() > 1; }))
    return;
  const tir::PrimFunc& function = *entry_.function;
  const Ref<tir::Buffer>& workspace = function.buffers.back();
  arith::Analyzer analyzer;
  const auto check_view = [&](const tir::DeclBuffer& view, const Expr& offset) {
    const auto begin = as_int(offset), end = end_of(*view.buffer, begin);
    size_t p = pools_.size() - 1;
    if (begin)
      while (p > 0 && *begin < pools_[p].offset) --p;
    const PoolParameter& pool = pools_[p];
    int64_t limit = std::numeric_limits<int64_t>::max();
    if (const auto bytes = as_int(pool.bytes)) limit = *bytes;
    if (pool.capacity) limit = std::min(limit, *pool.capacity);
    const bool is_last = p + 1 == pools_.size();
    const bool inside = begin
                            ? (end ? *end - pool.offset <= limit : is_last)
                            : analyzer.proves_less_equal(int64(pool.offset), cast(kInt64, offset));
    if (!inside)
      throw CompileError(
          kBadAttribute, view.origin,
          "buffer `{}` at byte {} of `{}` is not proved to lie in one of "
          "`tenon.pools`; pool `{}` has {} bytes from byte {} on",
          view.buffer->name, str(offset), workspace->name, pool.name,
          limit == std::numeric_limits<int64_t>::max() ? str(pool.bytes) : std::to_string(limit),
          pool.offset);
  };
  walk_if(function.body, [&](const NodePtr& node) {
    if (const auto* view = node.as<tir::DeclBuffer>())
      if (const auto* at = place_in(workspace, *view)) {
        check_view(*view, at->indices[0]);
        return false;
      }
    if (node.same_as(workspace) || node.same_as(workspace->data))
      throw CompileError(kBadAttribute, function.origin,
                         "`{}` is used as a whole, and `tenon.pools` divides it; expected "
                         "T.decl_buffer(..., data=T.address_of({}[OFFSET])) alone",
                         workspace->name, workspace->name);
    return true;
  });
}

}  // namespace tenon::c_backend
