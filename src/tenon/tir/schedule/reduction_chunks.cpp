// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/schedule/reduction_chunks.h"

#include <algorithm>
#include <numeric>

#include "tenon/tir/schedule/edit.h"
#include "tenon/tir/schedule/machine_model.h"
#include "tenon/tir/schedule/roles.h"

namespace tenon::tir {

namespace {

int64_t divided_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

bool uses_axis(const BufferLoad& load, const IterVar& axis) {
  return std::ranges::any_of(load.indices,
                             [&](const Expr& index) { return uses_var(index, axis.var.get()); });
}

// Whether the axis goes over the taps of a window: one index depends on it and on an axis of rows.
bool is_tap(const BufferLoad& load, const Block& block, const IterVar& axis) {
  return std::ranges::any_of(load.indices, [&](const Expr& index) {
    return uses_var(index, axis.var.get()) &&
           std::ranges::any_of(block.iter_vars, [&](const IterVar& other) {
             return other.kind != IterKind::kReduce && uses_var(index, other.var.get());
           });
  });
}

/// Extents of a product, or of a convolution, which has several axes of the reduction: `reduction` is the
/// position of the one that is cut, of `cut` iterations.
struct Product {
  size_t reduction = 0;
  // Where rows or steps are not known there is no product; columns that are not known are 0.
  int64_t rows = 1, columns = 1, steps = 1, cut = 1;
  int64_t row_bytes = 0;  // of the rows' operand
  // Iterations after which indices that divide the axis begin anew (two where an input has blocks of 8
  // channels and filters have blocks of 4): a chunk that began elsewhere would have indices that are no
  // sums of axes.
  int64_t period = 1;
  bool is_convolution = false;

  // Chunks are whole groups of iterations, of as many steps as are unrolled at most.
  static constexpr int64_t kLeastSteps = 16;
  int64_t group() const {
    const int64_t steps_of_one = steps / cut;
    return divided_up(divided_up(kLeastSteps, steps_of_one), period) * period;
  }
  int64_t most_chunks() const { return cut / group(); }
};

// The least common multiple of what indices divide the axis by.
int64_t period_of(const BufferLoad& load, const IterVar& axis) {
  int64_t period = 1;
  for (const Expr& index : load.indices)
    walk<Binary>(index, [&](const Binary& binary) {
      if (binary.op != BinaryOp::kFloorDiv && binary.op != BinaryOp::kFloorMod) return;
      const auto divisor = as_int(binary.rhs);
      if (divisor && *divisor > 0 && uses_var(binary.lhs, axis.var.get()))
        period = std::lcm(period, *divisor);
    });
  return period;
}

std::optional<Product> product_of(const Block& block) {
  const BufferStore* store = only_store(block);
  if (!is_reduction(block) || !block.init || !store || store->buffer->dtype != kFloat32 ||
      store->indices.empty())
    return std::nullopt;
  std::vector<const BufferLoad*> loads;
  walk<BufferLoad>(store->value, [&](const BufferLoad& load) {
    if (!load.buffer.same_as(store->buffer)) loads.push_back(&load);
  });
  if (loads.size() != 2 || loads[0]->buffer.same_as(loads[1]->buffer)) return std::nullopt;
  // Columns are what the last index of the result goes through.
  const auto is_column = [&](const IterVar& axis) {
    return uses_var(store->indices.back(), axis.var.get());
  };
  const auto columns = std::ranges::find_if(block.iter_vars, is_column);
  if (columns == block.iter_vars.end()) return std::nullopt;
  if (uses_axis(*loads[0], *columns)) std::swap(loads[0], loads[1]);
  if (uses_axis(*loads[0], *columns) || !uses_axis(*loads[1], *columns)) return std::nullopt;
  Product product;
  bool cuts_taps = false;  // as a filter of one channel must, whose taps are its one axis
  for (size_t a = 0; a < block.iter_vars.size(); ++a) {
    const IterVar& axis = block.iter_vars[a];
    const int64_t extent = extent_of(axis);
    if (extent == 1) continue;
    const bool in_rows = uses_axis(*loads[0], axis), in_weights = uses_axis(*loads[1], axis);
    if (axis.kind == IterKind::kReduce) {
      if (!in_rows || !in_weights || extent < 1) return std::nullopt;
      product.is_convolution |= product.steps != 1;
      product.steps *= extent;
      const bool tap = is_tap(*loads[0], block, axis);
      if (product.cut > 1 && (tap || !cuts_taps)) continue;
      cuts_taps = tap;
      product.reduction = a;
      product.cut = extent;
      product.period = std::lcm(period_of(*loads[0], axis), period_of(*loads[1], axis));
    } else if (in_rows) {
      if (in_weights) return std::nullopt;
      product.rows *= extent;
    } else {
      product.columns *= extent;
    }
  }
  if (product.rows < 1 || product.cut < 2 || (product.is_convolution && cuts_taps))
    return std::nullopt;
  product.row_bytes = product.rows * product.steps * kFloat32.bytes();
  // Windows overlap.
  const auto elements = as_int(element_count(loads[0]->buffer->shape));
  if (product.is_convolution && elements)
    product.row_bytes = std::min(product.row_bytes, *elements * kFloat32.bytes());
  return product;
}

// Chunks that have as many accumulators together as hide their latency, where all of a product's have not; 1
// where the number of columns is not known.
int64_t chunks_for_latency(const Product& product, const Target& target) {
  if (product.columns < 1) return 1;
  const MachineModel& model = machine_model(target);
  const int64_t lanes = target.vector_lanes(32);
  const int64_t sums = product.rows * divided_up(product.columns, lanes);
  if (sums > model.waiting_accumulators) return 1;
  const auto wanted = static_cast<int64_t>(model.fma_latency * model.fmas_per_cycle) / sums;
  return std::clamp<int64_t>(product.most_chunks(), 1, wanted);
}

}  // namespace

int64_t choose_chunks(const Block& block, const Target& target) {
  const MachineModel& model = machine_model(target);
  const auto product = product_of(block);
  if (!product) return 1;
  const bool has_few_rows = product->rows < model.chunk_rows;
  if (has_few_rows && !product->is_convolution) return chunks_for_latency(*product, target);
  const int64_t panel = model.chunk_vectors * target.vector_lanes(32);
  const int64_t panel_bytes = panel * product->steps * kFloat32.bytes();
  const int64_t bytes = product->row_bytes + 2 * panel_bytes;
  const bool is_even = product->columns > 0 && product->columns % panel == 0;
  int64_t wanted = divided_up(2 * bytes, target.l2_bytes);
  int64_t most = is_even ? model.most_chunks : model.most_uneven_chunks;
  if (product->is_convolution) {
    // A smaller panel of filters stays in the cache while all tiles of pixels use it.
    if (has_few_rows || panel_bytes <= target.l2_bytes) return 1;
    wanted = divided_up(panel_bytes, target.l2_bytes);
    most = model.most_chunks;
  }
  if (bytes <= target.l2_bytes) return 1;
  const int64_t chunks = std::max<int64_t>(
      1, std::min({product->steps / model.chunk_steps, wanted, most, product->most_chunks()}));
  // A chunk of a large picture does not fit either, while each chunk reads and writes all sums.
  const bool leaves = product->row_bytes / chunks > target.l2_bytes;
  return product->is_convolution && leaves ? 1 : chunks;
}

void cut_into_chunks(Schedule& schedule, const BlockRV& block, int64_t chunks) {
  const auto product = product_of(*schedule.get(block));
  const auto loop = product ? loop_of_axis(schedule, block, product->reduction) : std::nullopt;
  if (!loop)
    illegal(schedule.get(block)->origin, "block `{}` is no product of rows and columns",
            block.name);
  if (product->most_chunks() < chunks)
    illegal(schedule.get(block)->origin, "{} steps in {} chunks; expected {} each at least",
            product->steps, chunks, Product::kLeastSteps);
  std::vector<LoopRV> order{*loop};
  for (const LoopRV& other : schedule.get_loops(block))
    if (!(other == *loop)) order.push_back(other);
  schedule.reorder(order);
  schedule.decompose_reduction(block, *loop);
  std::vector<Expr> points;
  for (int64_t i = 1; i < chunks; ++i)
    points.push_back(int64(i * product->cut / chunks / product->group() * product->group()));
  schedule.loop_partition(*loop, points);
}

}  // namespace tenon::tir
