// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/schedule/weight_prefetch.h"

#include <algorithm>

#include "tenon/tir/schedule/edit.h"
#include "tenon/tir/schedule/machine_model.h"

namespace tenon::tir {

namespace {

/// The read of packed panels: a parameter of constant shape that other panels of `stream` move.
std::optional<int64_t> panels_of(Schedule& schedule, const BlockRV& block,
                                 const PanelStream& stream) {
  const Ref<BlockRealize> realize = schedule.realize(block);
  std::optional<int64_t> found;
  for (size_t r = 0; r < realize->block->reads.size(); ++r) {
    const BufferRegion& region = *realize->block->reads[r];
    if (region.region.size() < 3 || schedule.is_intermediate(region.buffer)) continue;
    Substitution axes;
    for (size_t a = 0; a < realize->iter_values.size(); ++a)
      axes[realize->block->iter_vars[a].var.get()] = realize->iter_values[a];
    const auto moved_by = [&](const LoopRV& loop) {
      return std::any_of(region.region.begin(), region.region.end(), [&](const Range& range) {
        return uses_var(substitute(range.min, axes), loop.var.get());
      });
    };
    const Expr first = substitute(region.region[0].min, axes);
    if (!uses_var(first, stream.panels.var.get()) || moved_by(stream.tiles) ||
        !moved_by(stream.step))
      continue;
    if (found) return std::nullopt;
    found = static_cast<int64_t>(r);
  }
  return found;
}

}  // namespace

bool streams_panels(const Buffer& buffer, const Target& target) {
  const auto shape = as_ints(buffer.shape);
  if (!shape || shape->size() < 3 || shape->front() < 2) return false;
  int64_t panel = buffer.dtype.bytes();
  for (size_t d = 1; d < shape->size(); ++d) panel *= (*shape)[d];
  const MachineModel& model = machine_model(target);
  return panel * shape->front() > target.l2_bytes * model.weights_l2_halves / 2 &&
         2 * panel <= target.l2_bytes * model.panels_l2_quarters / 4;
}

void prefetch_weights(Schedule& schedule, const BlockRV& block, const PanelStream& stream,
                      const Target& target) {
  const auto read = panels_of(schedule, block, stream);
  if (!read) return;
  const Ref<Buffer> buffer = schedule.get(block)->reads[static_cast<size_t>(*read)]->buffer;
  if (!streams_panels(*buffer, target)) return;
  const MachineModel& model = machine_model(target);
  const int64_t elements = model.line_bytes / buffer->dtype.bytes();
  const int64_t lines = (*as_int(buffer->shape.back()) * stream.steps + elements - 1) / elements;
  const int64_t tiles = as_int(schedule.get(stream.tiles)->extent).value_or(1);
  const int64_t hints = std::min(model.step_prefetches, (lines + tiles - 1) / tiles);
  for (int64_t i = 0; i < hints; ++i)
    schedule.prefetch_spread(block, *read, stream.step, stream.panels, stream.distance,
                             stream.tiles, elements, i * tiles, lines);
}

}  // namespace tenon::tir
