// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/schedule/default_winograd.h"

#include <algorithm>

#include "tenon/tir/schedule/attempt.h"
#include "tenon/tir/schedule/default_reduction.h"
#include "tenon/tir/schedule/edit.h"
#include "tenon/tir/schedule/winograd_form.h"

namespace tenon::tir {

// ---- the choice ---------------------------------------------------------------------------------

namespace {

// Whether so many weights come from beyond the second cache at each use.
bool is_streamed(double weights, const Target& target) {
  return weights * kFloat32.bytes() > static_cast<double>(target.l2_bytes);
}

double seconds_of(double cycles, double weights, const Target& target) {
  const MachineModel& model = machine_model(target);
  const double streamed =
      is_streamed(weights, target) ? weights * kFloat32.bytes() / model.bytes_per_second : 0;
  return std::max(cycles / model.cycles_per_second, streamed);
}

// Inputs and products of one tile at all positions.
int64_t tile_bytes(const ConvolutionSizes& sizes, const WinogradForm& form) {
  return sizes.images * form.points() * form.points() * (sizes.inputs + sizes.outputs) *
         kFloat32.bytes();
}

}  // namespace

static int64_t blocks_of(int64_t tiles, int64_t block_tiles) {
  return (tiles + block_tiles - 1) / block_tiles;
}

// Blocks of tiles in tasks, which wait for each other only once and find what they write in the cache
// of their core; where memory for a block of each is there, and every core's cache holds the filters.
static void divide(WinogradChoice& choice, const ConvolutionSizes& sizes, const Target& target,
                   int64_t room) {
  const WinogradForm& form = *winograd_form(choice.tile);
  const int64_t filters = form.points() * form.points() * sizes.inputs * sizes.outputs;
  const int64_t all = sizes.tiles(choice.tile);
  const MachineModel& model = machine_model(target);
  if (choice.block_tiles >= all || is_streamed(static_cast<double>(filters), target)) return;
  const int64_t tasks = model.winograd_tasks, blocks = blocks_of(all, choice.block_tiles);
  const int64_t even = blocks_of(all, (blocks + tasks - 1) / tasks * tasks);
  // Smaller blocks where there is no memory for two of this size, and the loops inside of one are too
  // short to be divided.
  const bool may_shrink = choice.block_tiles * filters < model.task_macs;
  const int64_t least = may_shrink ? std::min(even, model.winograd_few_tiles) : even;
  for (int64_t tiles = even; tiles >= least; --tiles) {
    if (blocks_of(all, tiles) % tasks != 0 || tasks * tiles * tile_bytes(sizes, form) > room)
      continue;
    choice.block_tiles = tiles;
    choice.tasks = tasks;
    return;
  }
}

int64_t winograd_bytes(const Block& block, const WinogradChoice& choice) {
  const auto sizes = convolution_sizes(block);
  const WinogradForm* form = winograd_form(choice.tile);
  return sizes && form ? tile_bytes(*sizes, *form) * choice.block_tiles * choice.tasks : 0;
}

int64_t winograd_blocks(const Block& block, const WinogradChoice& choice) {
  const auto sizes = convolution_sizes(block);
  return sizes ? blocks_of(sizes->tiles(choice.tile), choice.block_tiles) : 0;
}

namespace {

/// A form's time on one thread, as the model of the machine predicts it.
struct Prediction {
  double seconds;
  bool streams;  // its filters, from beyond the second cache
};

double rate_of(const Target& target) {
  const MachineModel& model = machine_model(target);
  return target.vector_lanes(32) * model.fmas_per_cycle * model.winograd_share;
}

using Rule = MachineModel::WinogradRule;

Prediction predict(const ConvolutionSizes& sizes, const Rule& rule, const Target& target) {
  const MachineModel& model = machine_model(target);
  const auto inputs = static_cast<double>(sizes.inputs),
             outputs = static_cast<double>(sizes.outputs),
             tiles = static_cast<double>(sizes.images * sizes.tiles(rule.tile));
  const int64_t points = winograd_form(rule.tile)->points();
  const auto positions = static_cast<double>(points * points);
  const double filters = positions * inputs * outputs;
  const double transforms =
      rule.transforms * positions *
      (inputs * model.winograd_input_cycles + outputs * model.winograd_output_cycles) /
      target.vector_lanes(32);
  return {seconds_of(tiles * (filters / rate_of(target) + transforms), filters, target),
          is_streamed(filters, target)};
}

/// The number of blocks of tiles that have their transforms in `room`, or in `grown` where that makes them
/// fewer; nothing where too few tiles have.
std::optional<int64_t> blocks_in(int64_t room, int64_t grown, const ConvolutionSizes& sizes,
                                 const Rule& rule, bool streams, const Target& target) {
  const MachineModel& model = machine_model(target);
  const int64_t all = sizes.tiles(rule.tile), bytes = tile_bytes(sizes, *winograd_form(rule.tile));
  const int64_t most = room / bytes;
  const int64_t least = streams ? rule.least_block : model.winograd_few_tiles;
  if (most < std::min(all, least)) return std::nullopt;
  int64_t blocks = std::max<int64_t>(1, (all + model.winograd_tiles / 2) / model.winograd_tiles);
  blocks = std::max(blocks, blocks_of(all, most));
  // Filters that do not stay in cache are read once for each block.
  const int64_t largest =
      std::min(model.winograd_streamed_tiles,
               std::min(target.l2_bytes * model.winograd_l2_halves / 2, grown) / bytes);
  if (streams && largest > 0) blocks = std::min(blocks, blocks_of(all, largest));
  return blocks;
}

}  // namespace

std::optional<WinogradChoice> choose_winograd(const Block& block, const Target& target,
                                              int64_t room, int64_t grown) {
  const auto sizes = convolution_sizes(block);
  if (!sizes || sizes->lanes % target.vector_lanes(32) != 0 ||
      block.writes.at(0)->buffer->dtype != kFloat32)
    return std::nullopt;
  const MachineModel& model = machine_model(target);
  const double filters = 9 * static_cast<double>(sizes->inputs * sizes->outputs);
  const auto places = static_cast<double>(sizes->images * sizes->rows * sizes->columns);
  const double direct = seconds_of(places * filters / rate_of(target), filters, target);
  std::optional<WinogradChoice> best;
  int64_t best_room = room;
  for (const Rule& rule : model.winograd_forms) {
    const Prediction form = predict(*sizes, rule, target);
    if (form.seconds >= (best ? best->seconds * rule.gain : direct * model.winograd_gain) ||
        sizes->inputs < rule.least_inputs ||
        (form.streams && sizes->tiles(rule.tile) < rule.least_tiles))
      continue;
    const int64_t form_room = rule.takes_grown_room ? grown : room;
    const auto blocks = blocks_in(form_room, grown, *sizes, rule, form.streams, target);
    if (!blocks) continue;
    const int64_t block_tiles = blocks_of(sizes->tiles(rule.tile), *blocks);
    best = WinogradChoice{rule.tile, block_tiles, 1, form.seconds, direct};
    best_room = form_room;
  }
  if (best) divide(*best, *sizes, target, best_room);
  return best;
}

// ---- the schedule -------------------------------------------------------------------------------

namespace {

class WinogradSchedule {
 public:
  WinogradSchedule(Schedule& schedule, const Target& target, const WinogradChoice& choice)
      : sch_(schedule), target_(target), choice_(choice) {}

  std::vector<TilePlan> run(const BlockRV& block, std::span<const GivenNest> given) {
    const std::vector<BlockRV> readers = sch_.consumers(block);
    std::vector<BlockRV> paddings;
    for (const BlockRV& producer : sch_.producers(block))
      if (is_padding(sch_, producer)) paddings.push_back(producer);
    sch_.simplify_block_iters(block);
    const std::vector<BlockRV> made = sch_.winograd(block, choice_.tile, choice_.block_tiles);
    const BlockRV &filter_rows = made[0], &filters = made[1], &patch = made[2],
                  &patch_rows = made[3], &input = made[4], &sum_columns = made[5];
    for (const BlockRV& padding : paddings) sch_.compute_inline(padding);
    for (const BlockRV& each : {filter_rows, filters})
      sch_.annotate(each, kLayoutRewritePreproc, true);
    const size_t axes = sch_.get(block)->iter_vars.size();
    has_blocks_ = extent_of(sch_.get(block)->iter_vars.front()) > 1;
    if (in_tasks() && !has_blocks_)
      illegal(sch_.get(block)->origin, "1 blocks of tiles in {} tasks; expected a divisor",
              choice_.tasks);
    check(axes > 2, "products of tiles have axes of blocks and positions");
    // Which axes of the result are in tiles: those that the products do not have.
    BlockRV output = made[6];
    std::vector<size_t> windows;
    for (size_t a = 0; a < sch_.get(output)->iter_vars.size(); ++a)
      if (!has_axis(block, sch_.get(output)->iter_vars[a].var->name)) windows.push_back(a);
    check(windows.size() == 2, "two axes of outputs are in tiles");
    if (readers.size() == 1 && attempt(sch_, [&] { sch_.reverse_compute_inline(readers[0]); }))
      output = readers[0];

    const std::optional<LoopRV> inputs = transform_inputs(input, patch_rows, patch);
    const std::optional<LoopRV> outputs = transform_outputs(output, sum_columns, windows);
    std::vector<TilePlan> plans = schedule_tiles(
        sch_, block, target_, given,
        {.takes_in_reader = false, .first_axis_outside = has_blocks_, .is_serial = in_tasks()});
    if (has_blocks_) {
      const LoopRV blocks = sch_.merge({*inputs, sch_.get_loops(block).front(), *outputs});
      if (in_tasks()) divide(blocks);
    }
    return plans;
  }

 private:
  bool has_axis(const BlockRV& block, const std::string& name) {
    const Ref<Block> node = sch_.get(block);
    return std::any_of(node->iter_vars.begin(), node->iter_vars.end(),
                       [&](const IterVar& iter) { return iter.var->name == name; });
  }

  /// Loops of a block below `at` that its nest got: unrolled, but for the last one, in vectors.
  void unroll_below(const BlockRV& block, const LoopRV& at) {
    const std::vector<LoopRV> loops = sch_.get_loops(block);
    const auto first = std::find(loops.begin(), loops.end(), at);
    for (auto loop = first + 1; loop < loops.end(); ++loop) {
      if (loop + 1 < loops.end())
        sch_.unroll(*loop);
      else
        vectorize(*loop);
    }
  }

  void vectorize(const LoopRV& loop) {
    const int64_t lanes = target_.vector_lanes(32);
    const int64_t extent = as_int(sch_.get(loop)->extent).value_or(0);
    if (extent % lanes != 0)
      illegal(sch_.get(loop)->origin, "loop `{}` of {} iterations is not one of whole vectors",
              loop.var->name, extent);
    if (extent == lanes) return sch_.vectorize(loop);
    const auto parts = sch_.split(loop, lanes);
    sch_.unroll(parts[0]);
    sch_.vectorize(parts[1]);
  }

  bool in_tasks() const { return choice_.tasks > 1; }

  void divide(const LoopRV& blocks) {
    const int64_t count = as_int(sch_.get(blocks)->extent).value_or(0);
    if (count % choice_.tasks != 0)
      illegal(sch_.get(blocks)->origin, "{} blocks of tiles in {} tasks; expected a divisor", count,
              choice_.tasks);
    sch_.parallel(sch_.split(blocks, count / choice_.tasks)[0]);
  }

  void parallelize(const std::vector<LoopRV>& loops) {
    if (loops.empty() || in_tasks()) return;
    sch_.parallel(loops.size() > 1 ? sch_.fuse(loops) : loops[0]);
  }

  /// Patches are taken, and transformed along one axis, for one tile and vector of channels at a time.
  /// \returns the loop over blocks of tiles, where there are several.
  std::optional<LoopRV> transform_inputs(const BlockRV& input, const BlockRV& patch_rows,
                                         const BlockRV& patch) {
    const size_t axes = sch_.get(input)->iter_vars.size();
    std::vector<LoopRV> outer;
    for (size_t a = 1; a + 3 < axes; ++a)
      if (const auto loop = loop_of_axis(sch_, input, a)) outer.push_back(*loop);
    if (outer.empty())
      illegal(sch_.get(input)->origin, "there is one tile of one vector of channels only");
    const LoopRV at = outer.back();
    outer.pop_back();
    sch_.compute_at(patch_rows, at);
    sch_.compute_at(patch, at);
    for (const BlockRV& block : {patch, patch_rows}) sch_.set_scope(block, 0, "local");
    for (const BlockRV& block : {patch, patch_rows, input}) unroll_below(block, at);
    parallelize(outer);
    return loop_of_axis(sch_, input, 0);
  }

  /// The result tile by tile, in the order of the blocks of tiles.
  std::optional<LoopRV> transform_outputs(const BlockRV& output, const BlockRV& sum_columns,
                                          const std::vector<size_t>& windows) {
    const LoopRV rows = *loop_of_axis(sch_, output, windows[0]),
                 columns = *loop_of_axis(sch_, output, windows[1]);
    std::vector<LoopRV> outer = sch_.get_loops(output);
    const LoopRV lane = outer.back();
    std::erase_if(
        outer, [&](const LoopRV& loop) { return loop == rows || loop == columns || loop == lane; });
    const auto y = sch_.split(rows, choice_.tile), x = sch_.split(columns, choice_.tile);
    std::vector<LoopRV> order = outer;
    for (const LoopRV& loop : {y[0], x[0], y[1], x[1], lane}) order.push_back(loop);
    sch_.reorder(order);
    LoopRV tile = sch_.fuse({y[0], x[0]});
    std::optional<LoopRV> blocks;
    if (has_blocks_) {
      const auto parts = sch_.split(tile, choice_.block_tiles);
      blocks = parts[0];
      tile = parts[1];
      order = {*blocks};
      order.insert(order.end(), outer.begin(), outer.end());
      order.push_back(tile);
      sch_.reorder(order);
    }
    sch_.compute_at(sum_columns, tile);
    sch_.set_scope(sum_columns, 0, "local");
    for (const BlockRV& block : {sum_columns, output}) unroll_below(block, tile);
    parallelize(outer);
    return blocks;
  }

  Schedule& sch_;
  const Target& target_;
  const WinogradChoice& choice_;
  bool has_blocks_ = false;
};

}  // namespace

std::vector<TilePlan> schedule_winograd(Schedule& schedule, const BlockRV& block,
                                        const Target& target, const WinogradChoice& choice,
                                        std::span<const GivenNest> given) {
  return WinogradSchedule(schedule, target, choice).run(block, given);
}

}  // namespace tenon::tir
