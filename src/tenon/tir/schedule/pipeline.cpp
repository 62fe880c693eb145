// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/schedule/pipeline.h"

#include <algorithm>

#include "tenon/tir/analysis/pipeline.h"
#include "tenon/tir/schedule/edit.h"

namespace tenon::tir {

namespace {

// What the outermost blocks of a statement state of each buffer.
std::vector<ParamEffect> stated(const Stmt& stmt, const std::vector<Ref<Buffer>>& buffers) {
  std::vector<ParamEffect> out(buffers.size());
  const auto lists = [](const std::vector<Ref<BufferRegion>>& regions, const Ref<Buffer>& buffer) {
    return std::any_of(regions.begin(), regions.end(), [&](const Ref<BufferRegion>& region) {
      return region->buffer.same_as(buffer);
    });
  };
  for (const Ref<BlockRealize>& realize : realizes_in(stmt))
    for (size_t b = 0; b < buffers.size(); ++b) {
      out[b].reads |= lists(realize->block->reads, buffers[b]);
      out[b].writes |= lists(realize->block->writes, buffers[b]);
    }
  return out;
}

}  // namespace

void software_pipeline(Schedule& schedule, const LoopRV& loop, const std::vector<int64_t>& stages,
                       int64_t versions) {
  const Ref<For> node = schedule.get(loop);
  const auto marked = make<For>(node->loop_var, node->min, node->extent, node->kind, node->body,
                                node->annotations.with(kPipelineStage, AttrValue(stages))
                                    .with(kPipelineVersions, AttrValue(versions)),
                                node->origin);
  const Stmt root = schedule.func()->body;
  std::vector<Ref<Buffer>> outer;
  for (const Ref<Buffer>& buffer : root_block(*schedule.func())->alloc_buffers) {
    bool elsewhere = false;
    for (const Ref<BlockRealize>& realize : realizes_in(root)) {
      if (realize.get() == root.get()) continue;
      const bool uses =
          reads_buffer(*realize->block, buffer) || writes_buffer(*realize->block, buffer);
      const auto is_it = [&](const Stmt& stmt) { return stmt.same_as(realize); };
      elsewhere |= uses && !find_path(node->body, is_it);
    }
    if (!elsewhere) outer.push_back(buffer);
  }
  plan_pipeline(*marked, outer, {stated, [](const Stmt& stmt) { return find_accesses(stmt); }});
  schedule.annotate(loop, kPipelineStage, AttrValue(stages));
  schedule.annotate(loop, kPipelineVersions, AttrValue(versions));
}

}  // namespace tenon::tir
