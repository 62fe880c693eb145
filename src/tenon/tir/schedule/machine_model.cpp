// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/schedule/machine_model.h"

#include <cmath>

namespace tenon::tir {

static constexpr MachineModel kSixteenRegisters{};

static constexpr MachineModel kThirtyTwoRegisters{
    .registers = 32,
    .spare_registers = 4,
    .row_vectors = 8,
    .lone_broadcast_outputs = 28,
    .lone_broadcast_cycles = 0,
    .interleaved_vectors = 4,
    .l2_bytes_per_cycle = 30,
    .window_accumulators = 8,
    .panels_l2_quarters = 3,
};

const MachineModel& machine_model(const Target& target) {
  return target.vector_registers >= kThirtyTwoRegisters.registers ? kThirtyTwoRegisters
                                                                  : kSixteenRegisters;
}

double spread_cost(int64_t tasks, double size, const MachineModel& model) {
  double cost = 0;
  for (const auto& [threads, weight] : model.task_threads) {
    const int64_t longest = (tasks + threads - 1) / threads;
    cost += weight * std::log(static_cast<double>(longest * threads) * size);
  }
  return cost;
}

}  // namespace tenon::tir
