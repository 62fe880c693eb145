// SPDX-License-Identifier: Apache-2.0
#include "tenon/tune/estimate.h"

#include <fmt/core.h>

#include <algorithm>

#include "tenon/graph/arithmetic.h"
#include "tenon/tir/analysis/block_work.h"
#include "tenon/tir/schedule/machine_model.h"

namespace tenon::tune {

static double lanes_of(const Target& target) {
  return std::max(1.0, static_cast<double>(target.vector_bits) / 32);
}

static double seconds_of(double cycles, double bytes, const tir::MachineModel& model) {
  return model.call_seconds +
         std::max(cycles / model.cycles_per_second, bytes / model.bytes_per_second);
}

double estimated_seconds(const graph::Function& function, const Target& target) {
  using graph::SymbolicDims;
  const tir::MachineModel& model = tir::machine_model(target);
  const double lanes = lanes_of(target);
  double cycles = 0, bytes = 0;
  for (const Ref<graph::Var>& param : function.params) bytes += graph::bytes_of(param->type);
  walk<graph::Binding>(function.body, [&](const graph::Binding& binding) {
    const auto* call = binding.value.as<graph::Call>();
    if (!call || !call->op) return;
    const double macs = graph::macs_of(*call, binding.var->type, SymbolicDims::kAsOne).value_or(0);
    if (macs > 0)
      cycles += macs / (lanes * model.fmas_per_cycle * model.share_of_peak);
    else
      cycles += graph::bytes_of(binding.var->type) / 4 / (lanes * model.elements_per_cycle);
  });
  bytes += graph::bytes_of(graph::type_of(function.body->body));
  return seconds_of(cycles, bytes, model);
}

double estimated_seconds(const tir::PrimFunc& kernel, const Target& target) {
  const tir::MachineModel& model = tir::machine_model(target);
  const double lanes = lanes_of(target);
  double cycles = 0, bytes = 0;
  for (const Ref<tir::Buffer>& buffer : kernel.buffers) {
    if (!buffer) continue;
    double size = static_cast<double>(buffer->dtype.bytes());
    for (const Expr& dim : buffer->shape) size *= static_cast<double>(as_int(dim).value_or(1));
    bytes += size;
  }
  for (const Ref<tir::Block>& block : tir::blocks_of(kernel)) {
    const tir::BlockWork work = tir::work_of(*block);
    const bool contracts = work.kind == tir::WorkKind::kContracts;
    cycles += work.points / (lanes * (contracts ? model.fmas_per_cycle * model.share_of_peak
                                                : model.elements_per_cycle));
  }
  return seconds_of(cycles, bytes, model);
}

std::string cost_refusal(double declared, double own) {
  if (declared <= kClearlyDearer * own) return "";
  return fmt::format("declares {:.3g} us; own code is estimated at {:.3g} us", declared * 1e6,
                     own * 1e6);
}

}  // namespace tenon::tune
