// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/schedule/machine_model.h"

namespace tenon::tir {

static constexpr MachineModel kSixteenRegisters{};

static constexpr MachineModel kThirtyTwoRegisters{
    .registers = 32,
    .spare_registers = 4,
    .row_vectors = 8,
    .lone_broadcast_outputs = 28,
    .lone_broadcast_cycles = 0,
};

const MachineModel& machine_model(const Target& target) {
  return target.vector_registers >= kThirtyTwoRegisters.registers ? kThirtyTwoRegisters
                                                                  : kSixteenRegisters;
}

}  // namespace tenon::tir
