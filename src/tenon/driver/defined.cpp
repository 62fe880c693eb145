// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/defined.h"

#include <algorithm>

#include "tenon/driver/tensors.h"
#include "tenon/interp/interpreter.h"
#include "tenon/support/kernel_codes.h"
#include "tenon/tir/call_effects.h"
#include "tenon/tir/stmt.h"

namespace tenon {

// Buffers for a call: random where the kernel reads, null where it only writes. Nothing where a
// size is not known.
static std::optional<std::vector<Ref<TensorData>>> sample(
    const tir::PrimFunc& kernel, const std::vector<tir::ParamEffect>& effects) {
  constexpr int64_t kMostElements = 1 << 22;
  std::vector<Ref<TensorData>> buffers;
  for (size_t i = 0; i < kernel.params.size(); ++i) {
    if (!kernel.buffers[i]) return std::nullopt;
    std::vector<int64_t> shape;
    int64_t elements = 1;
    for (const Expr& dim : kernel.buffers[i]->shape) {
      const auto* size = dim.as<IntImm>();
      if (!size || size->value > kMostElements) return std::nullopt;
      shape.push_back(size->value);
      elements *= std::max<int64_t>(size->value, 1);
      if (elements > kMostElements) return std::nullopt;
    }
    const bool is_out = i < effects.size() && effects[i].is_out();
    buffers.push_back(is_out ? Ref<TensorData>()
                             : random_tensor(kernel.buffers[i]->dtype, shape, i));
  }
  return buffers;
}

static bool is_defined(const IRModule& module, const std::string& name, const tir::PrimFunc& kernel,
                       tir::CallEffects& effects) {
  const auto buffers = sample(kernel, effects.of(name));
  if (!buffers) return true;
  constexpr int64_t kMostSteps = 2'000'000;
  try {
    interp::Interpreter(module, {.step_limit = kMostSteps, .find_races = true})
        .run_prim_func(name, *buffers);
  } catch (const CompileError& error) {
    const std::string_view code = error.first().code.id;
    return code == kLimitExceeded.id || code == kUnsupported.id;
  }
  return true;
}

std::vector<std::string> defined_kernels(const IRModule& module) {
  std::vector<std::string> names;
  tir::CallEffects effects(module);
  for (const auto& [name, function] : module.functions())
    if (const auto* kernel = function.as<tir::PrimFunc>())
      if (is_defined(module, name, *kernel, effects)) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace tenon
