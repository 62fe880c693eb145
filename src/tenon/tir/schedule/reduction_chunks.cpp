// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/schedule/reduction_chunks.h"

#include <algorithm>

#include "tenon/tir/schedule/edit.h"
#include "tenon/tir/schedule/machine_model.h"
#include "tenon/tir/schedule/roles.h"

namespace tenon::tir {

namespace {

bool uses_axis(const BufferLoad& load, const IterVar& axis) {
  return std::ranges::any_of(load.indices,
                             [&](const Expr& index) { return uses_var(index, axis.var.get()); });
}

/// Extents of a product: `reduction` is the position of its one axis of the reduction.
struct Product {
  size_t reduction = 0;
  // Where rows or steps are not known there is no product; columns that are not known are 0.
  int64_t rows = 1, columns = 1, steps = 1;
};

// Whole groups of as many steps as are unrolled at most.
constexpr int64_t kGroup = 16;

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
  for (size_t a = 0; a < block.iter_vars.size(); ++a) {
    const IterVar& axis = block.iter_vars[a];
    const int64_t extent = extent_of(axis);
    if (extent == 1) continue;
    const bool in_rows = uses_axis(*loads[0], axis), in_weights = uses_axis(*loads[1], axis);
    if (axis.kind == IterKind::kReduce) {
      if (product.steps != 1 || !in_rows || !in_weights) return std::nullopt;
      product.reduction = a;
      product.steps = extent;
    } else if (in_rows) {
      if (in_weights) return std::nullopt;
      product.rows *= extent;
    } else {
      product.columns *= extent;
    }
  }
  return product.rows > 0 && product.steps > 1 ? std::optional(product) : std::nullopt;
}

// Chunks that have as many accumulators together as hide their latency, where all of a product's have not; 1
// where the number of columns is not known.
int64_t chunks_for_latency(const Product& product, const Target& target) {
  if (product.columns < 1) return 1;
  const MachineModel& model = machine_model(target);
  const int64_t lanes = target.vector_lanes(32);
  const int64_t sums = product.rows * ((product.columns + lanes - 1) / lanes);
  if (sums > model.waiting_accumulators) return 1;
  const auto wanted = static_cast<int64_t>(model.fma_latency * model.fmas_per_cycle) / sums;
  return std::clamp<int64_t>(product.steps / kGroup, 1, wanted);
}

}  // namespace

int64_t choose_chunks(const Block& block, const Target& target) {
  const MachineModel& model = machine_model(target);
  const auto product = product_of(block);
  if (!product) return 1;
  if (product->rows < model.chunk_rows) return chunks_for_latency(*product, target);
  const int64_t panel = model.chunk_vectors * target.vector_lanes(32);
  const int64_t bytes = (product->rows + 2 * panel) * product->steps * kFloat32.bytes();
  if (bytes <= target.l2_bytes) return 1;
  const int64_t wanted = (2 * bytes + target.l2_bytes - 1) / target.l2_bytes;
  const bool is_even = product->columns > 0 && product->columns % panel == 0;
  const int64_t most = is_even ? model.most_chunks : model.most_uneven_chunks;
  return std::clamp<int64_t>(product->steps / model.chunk_steps, 1, std::min(wanted, most));
}

void cut_into_chunks(Schedule& schedule, const BlockRV& block, int64_t chunks) {
  const auto product = product_of(*schedule.get(block));
  const auto loop = product ? loop_of_axis(schedule, block, product->reduction) : std::nullopt;
  if (!loop)
    illegal(schedule.get(block)->origin, "block `{}` is no product of rows and columns",
            block.name);
  if (product->steps / kGroup < chunks)
    illegal(schedule.get(block)->origin, "{} steps in {} chunks; expected {} each at least",
            product->steps, chunks, kGroup);
  std::vector<LoopRV> order{*loop};
  for (const LoopRV& other : schedule.get_loops(block))
    if (!(other == *loop)) order.push_back(other);
  schedule.reorder(order);
  schedule.decompose_reduction(block, *loop);
  std::vector<Expr> points;
  for (int64_t i = 1; i < chunks; ++i)
    points.push_back(int64(i * product->steps / chunks / kGroup * kGroup));
  schedule.loop_partition(*loop, points);
}

}  // namespace tenon::tir
