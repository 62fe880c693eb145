// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/schedule/weight_prefetch.h"

#include <algorithm>

#include "tenon/arith/int_set.h"
#include "tenon/tir/schedule/default_schedule.h"
#include "tenon/tir/schedule/default_winograd.h"
#include "tenon/tir/schedule/edit.h"
#include "tenon/tir/schedule/machine_model.h"

namespace tenon::tir {

bool shares_elements(const Buffer& buffer, DType sum) {
  return (buffer.dtype == kUInt8 || buffer.dtype == kUInt32) && sum.is_float();
}

namespace {

struct Panels {
  int64_t read;  // of the block
  LoopRV step;   // innermost loop of the reduction that moves it
  int64_t steps = 1;
};

// Whether the values of a buffer are there before the kernel runs: it is a parameter, or will be one.
bool is_given(Schedule& schedule, const BlockRV& block, const Ref<Buffer>& buffer) {
  if (!schedule.is_intermediate(buffer)) return true;
  const std::vector<BlockRV> producers = schedule.producers(block);
  return std::all_of(producers.begin(), producers.end(), [&](const BlockRV& producer) {
    const Ref<Block> node = schedule.get(producer);
    return !writes_buffer(*node, buffer) || node->annotations.flag(kLayoutRewritePreproc);
  });
}

/// The read of packed panels: a parameter of constant shape that other panels of `stream` move. The
/// innermost loop of the reduction moves it too, unless it goes through numbers that share an element.
std::optional<Panels> panels_of(Schedule& schedule, const BlockRV& block,
                                const PanelStream& stream) {
  const Ref<BlockRealize> realize = schedule.realize(block);
  const DType sum = realize->block->writes.at(0)->buffer->dtype;
  std::optional<Panels> found;
  for (size_t r = 0; r < realize->block->reads.size(); ++r) {
    const BufferRegion& region = *realize->block->reads[r];
    if (region.region.size() < 3 || !is_given(schedule, block, region.buffer)) continue;
    Substitution axes;
    for (size_t a = 0; a < realize->iter_values.size(); ++a)
      axes[realize->block->iter_vars[a].var.get()] = realize->iter_values[a];
    const auto moved_by = [&](const LoopRV& loop) {
      return std::any_of(region.region.begin(), region.region.end(), [&](const Range& range) {
        return uses_var(substitute(range.min, axes), loop.var.get());
      });
    };
    const Expr first = substitute(region.region[0].min, axes);
    // A loop whose steps are all unrolled is left with one iteration, and moves nothing.
    const auto innermost =
        std::find_if(stream.reduction.rbegin(), stream.reduction.rend(),
                     [&](const LoopRV& loop) { return !is_int(schedule.get(loop)->extent, 1); });
    const auto step = std::find_if(innermost, stream.reduction.rend(), moved_by);
    const bool is_packed = shares_elements(*region.buffer, sum);
    if (!uses_var(first, stream.panels.var.get()) || moved_by(stream.tiles) ||
        step == stream.reduction.rend() || (step != innermost && !is_packed))
      continue;
    if (found) return std::nullopt;
    found = Panels{static_cast<int64_t>(r), *step};
    if (stream.unrolled && (!is_packed || moved_by(*stream.unrolled)))
      found->steps = as_int(schedule.get(*stream.unrolled)->extent).value_or(1);
  }
  return found;
}

}  // namespace

// Bytes of a panel, of a buffer of constant shape.
static int64_t panel_bytes(const Buffer& buffer, const std::vector<int64_t>& shape) {
  int64_t panel = buffer.dtype.bytes();
  for (size_t d = 1; d < shape.size(); ++d) panel *= shape[d];
  return panel;
}

// Bytes of a panel that `block` reads: a chunk of a long reduction reads a part.
static int64_t read_panel_bytes(const Block& block, const BufferRegion& weights,
                                const std::vector<int64_t>& shape) {
  arith::Domain axes;
  for (const IterVar& iter : block.iter_vars)
    axes[iter.var.get()] = arith::Interval::of(iter.domain);
  arith::Analyzer analyzer;
  const auto region = arith::evaluate_region(analyzer, weights.region, axes);
  int64_t bytes = weights.buffer->dtype.bytes();
  for (size_t d = 1; d < shape.size(); ++d) {
    const auto extent =
        region[d].is_bounded() ? as_int(arith::to_range(analyzer, region[d]).extent) : std::nullopt;
    bytes *= extent ? std::clamp<int64_t>(*extent, 1, shape[d]) : shape[d];
  }
  return bytes;
}

int64_t panels_ahead(const Buffer& buffer, DType sum, const Target& target) {
  const auto shape = as_ints(buffer.shape);
  if (!shape || !shares_elements(buffer, sum)) return 1;
  const int64_t panel = std::max<int64_t>(1, panel_bytes(buffer, *shape));
  return (machine_model(target).packed_ahead_bytes + panel - 1) / panel;
}

bool streams_panels(const Block& block, const BufferRegion& weights, const Target& target,
                    bool is_far) {
  const Buffer& buffer = *weights.buffer;
  const auto shape = as_ints(buffer.shape);
  if (!shape || shape->size() < 3 || shape->front() < 2) return false;
  const MachineModel& model = machine_model(target);
  const int64_t stays = is_far ? target.l1_bytes : target.l2_bytes * model.weights_l2_halves / 2;
  return (shares_elements(buffer, block.writes.at(0)->buffer->dtype) ||
          panel_bytes(buffer, *shape) * shape->front() > stays) &&
         2 * read_panel_bytes(block, weights, *shape) <=
             target.l2_bytes * model.panels_l2_quarters / 4;
}

namespace {

/// What shares out the lines of a panel: iterations of `over`, which are `passes` in all pieces. Where tasks
/// share them, each task runs the tiles of all pieces: of the hints that a task has, a piece gives
/// the part that its tiles [first, last) are of all `tiles`.
struct Shares {
  LoopRV over;
  int64_t before = 0, passes = 1;
  int64_t first = 0, last = 1, tiles = 1;
};

// The loop that has most of them; the others repeat its hints.
Shares shares_of(Schedule& schedule, const PanelStream& stream) {
  const auto count = [&](const LoopRV& loop) {
    return as_int(schedule.get(loop)->extent).value_or(1);
  };
  if (stream.passes == 0) return {stream.tiles, 0, count(stream.tiles)};
  if (stream.tasks > stream.passes) {
    // As tiles of pieces are counted: by the longer one of the two loops.
    const int64_t own =
        std::max(count(stream.tiles), stream.row_tiles ? count(*stream.row_tiles) : 1);
    return {stream.panels, 0, stream.tasks, stream.before, stream.before + own, stream.passes};
  }
  const bool by_rows = stream.row_tiles && count(*stream.row_tiles) > count(stream.tiles);
  return {by_rows ? *stream.row_tiles : stream.tiles, stream.before, stream.passes};
}

}  // namespace

void prefetch_weights(Schedule& schedule, const BlockRV& block, const PanelStream& stream,
                      const Target& target) {
  const auto panels = panels_of(schedule, block, stream);
  if (!panels) return;
  const Ref<Block> node = schedule.get(block);
  const BufferRegion& weights = *node->reads[static_cast<size_t>(panels->read)];
  const Ref<Buffer> buffer = weights.buffer;
  if (!streams_panels(*node, weights, target, schedule.func()->attrs.flag(kFarConstants))) return;
  const MachineModel& model = machine_model(target);
  const int64_t elements = model.line_bytes / buffer->dtype.bytes();
  const int64_t lines = (*as_int(buffer->shape.back()) * panels->steps + elements - 1) / elements;
  const Shares shares = shares_of(schedule, stream);
  // A step takes several numbers of each element: arithmetic enough for all hints.
  const bool is_packed = shares_elements(*buffer, node->writes.at(0)->buffer->dtype);
  const int64_t most =
      is_packed ? lines : std::max<int64_t>(1, stream.sums * panels->steps / model.prefetch_fmas);
  const int64_t hints = std::min(most, (lines + shares.passes - 1) / shares.passes);
  for (int64_t i = hints * shares.first / shares.tiles; i < hints * shares.last / shares.tiles; ++i)
    schedule.prefetch_spread(block, panels->read, panels->step, stream.panels, stream.distance,
                             shares.over, elements, (shares.before + i * shares.passes) % lines,
                             lines);
}

void prefetch_columns(Schedule& schedule, const BlockRV& block, const ColumnStream& stream,
                      const Target& target) {
  const Ref<BlockRealize> realize = schedule.realize(block);
  Substitution axes;
  for (size_t a = 0; a < realize->iter_values.size(); ++a)
    axes[realize->block->iter_vars[a].var.get()] = realize->iter_values[a];
  const int64_t steps = as_int(schedule.get(stream.step)->extent).value_or(0);
  for (size_t r = 0; r < realize->block->reads.size(); ++r) {
    const BufferRegion& region = *realize->block->reads[r];
    const size_t ndim = region.region.size();
    if (ndim < 3 || steps < 1 || !is_given(schedule, block, region.buffer)) continue;
    std::vector<Expr> place;
    place.reserve(ndim);
    for (const Range& range : region.region) place.push_back(substitute(range.min, axes));
    const auto uses = [&](size_t d, const LoopRV& loop) {
      return uses_var(place[d], loop.var.get());
    };
    const auto by_column = std::find_if(stream.registers.begin(), stream.registers.end(),
                                        [&](const LoopRV& loop) { return uses(ndim - 2, loop); });
    if (by_column == stream.registers.end() || !uses(ndim - 1, stream.step)) continue;
    const bool far_apart = !uses(ndim - 1, stream.ahead) && !uses(ndim - 2, stream.ahead);
    bool moves = false;
    for (size_t d = 0; d + 2 < ndim; ++d) moves = moves || uses(d, stream.ahead);
    if (!far_apart || !moves) continue;
    const auto at = [&](int64_t column) {
      return substitute(place[ndim - 2],
                        {{by_column->var.get(), zero_of(by_column->var) + column}});
    };
    const int64_t elements = machine_model(target).line_bytes / region.buffer->dtype.bytes(),
                  columns = as_int(schedule.get(*by_column)->extent).value_or(1),
                  stride = std::max<int64_t>(1, as_int(arith::simplify(at(1) - at(0))).value_or(1));
    if (as_int(region.buffer->shape.back()) != elements) continue;
    for (int64_t first = 0; first < columns; first += steps)
      schedule.prefetch_spread(block, static_cast<int64_t>(r), stream.step, stream.ahead, 1,
                               stream.step, elements * stride, first,
                               (columns + steps - 1) / steps * steps);
  }
}

}  // namespace tenon::tir
