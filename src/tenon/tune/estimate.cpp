#include "tenon/tune/estimate.h"

#include <algorithm>

#include "tenon/graph/arithmetic.h"

namespace tenon::tune {

// A core of today's servers. What decides is the ratio to what back ends declare, not these.
static constexpr double kCyclesPerSecond = 2.5e9;
static constexpr double kMultiplyAddsPerCycle = 2;  // vectors
static constexpr double kShareOfPeak = 0.7;         // what contractions reach
static constexpr double kBytesPerSecond = 1e10;     // from the last cache and from memory
static constexpr double kElementsPerCycle = 0.25;   // of a vector, in what is no contraction
static constexpr double kSecondsOfCall = 2e-7;

double estimated_seconds(const graph::Function& function, const Target& target) {
  using graph::SymbolicDims;
  const double lanes = std::max(1.0, static_cast<double>(target.vector_bits) / 32);
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
  return kSecondsOfCall + std::max(cycles / kCyclesPerSecond, bytes / kBytesPerSecond);
}

}  // namespace tenon::tune
