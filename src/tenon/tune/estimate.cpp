// SPDX-License-Identifier: Apache-2.0
#include "tenon/tune/estimate.h"

#include <fmt/core.h>

#include <algorithm>

#include "tenon/graph/arithmetic.h"
#include "tenon/tir/analysis/block_work.h"

namespace tenon::tune {

// A core of today's servers. What decides is the ratio to what back ends declare, not these.
static constexpr double kCyclesPerSecond = 2.5e9;
static constexpr double kMultiplyAddsPerCycle = 2;  // vectors
static constexpr double kShareOfPeak = 0.7;         // what contractions reach
static constexpr double kBytesPerSecond = 1e10;     // from the last cache and from memory
static constexpr double kElementsPerCycle = 0.25;   // of a vector, in what is no contraction
static constexpr double kSecondsOfCall = 2e-7;

static double lanes_of(const Target& target) {
  return std::max(1.0, static_cast<double>(target.vector_bits) / 32);
}

static double seconds_of(double cycles, double bytes) {
  return kSecondsOfCall + std::max(cycles / kCyclesPerSecond, bytes / kBytesPerSecond);
}

double estimated_seconds(const graph::Function& function, const Target& target) {
  using graph::SymbolicDims;
  const double lanes = lanes_of(target);
  double cycles = 0, bytes = 0;
  for (const Ref<graph::Var>& param : function.params) bytes += graph::bytes_of(param->type);
  walk<graph::Binding>(function.body, [&](const graph::Binding& binding) {
    const auto* call = binding.value.as<graph::Call>();
    if (!call || !call->op) return;
    const double macs = graph::macs_of(*call, binding.var->type, SymbolicDims::kAsOne).value_or(0);
    if (macs > 0)
      cycles += macs / (lanes * kMultiplyAddsPerCycle * kShareOfPeak);
    else
      cycles += graph::bytes_of(binding.var->type) / 4 / (lanes * kElementsPerCycle);
  });
  bytes += graph::bytes_of(graph::type_of(function.body->body));
  return seconds_of(cycles, bytes);
}

double estimated_seconds(const tir::PrimFunc& kernel, const Target& target) {
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
    cycles += work.points /
              (lanes * (contracts ? kMultiplyAddsPerCycle * kShareOfPeak : kElementsPerCycle));
  }
  return seconds_of(cycles, bytes);
}

std::string cost_refusal(double declared, double own) {
  if (declared <= kClearlyDearer * own) return "";
  return fmt::format("declares {:.3g} us; own code is estimated at {:.3g} us", declared * 1e6,
                     own * 1e6);
}

}  // namespace tenon::tune
