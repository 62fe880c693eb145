// SPDX-License-Identifier: Apache-2.0
// AnnotateFiniteParams: the weights that a kernel multiplies zeros of a padding with are finite where
// every call gives it constants without infinities and NaN. Schedules hang on that: they cannot see
// what a kernel is called with.
#include <cmath>
#include <map>

#include "tenon/graph/expr.h"
#include "tenon/graph/transforms.h"
#include "tenon/graph/transforms/kernels_of_graphs.h"
#include "tenon/tir/schedule/skip_padding.h"

namespace tenon::graph {

namespace {

bool is_finite(const TensorData& data) {
  const int64_t count = data.is_splat() ? std::min<int64_t>(data.elements(), 1) : data.elements();
  for (int64_t i = 0; i < count; ++i)
    if (!std::isfinite(data.at_float(i))) return false;
  return true;
}

}  // namespace

IRModule annotate_finite_params(IRModule module) {
  const std::unordered_set<std::string> candidates = kernels_of_graphs(module);
  std::map<std::string, std::vector<int64_t>> params;  // that matter, and are finite so far
  for (const auto& [name, function] : module.functions()) {
    const Ref<tir::PrimFunc> kernel = cast<tir::PrimFunc>(function);
    if (!kernel || !candidates.count(name)) continue;
    if (auto factors = tir::factors_of_padding(*kernel); !factors.empty())
      params.emplace(name, std::move(factors));
  }
  if (params.empty()) return module;
  for (const auto& [name, function] : module.functions())
    walk<Call>(function, [&](const Call& call) {
      const auto* callee = is_call_tir(call) ? call.args[0].as<FuncRef>() : nullptr;
      const auto found = callee ? params.find(callee->name) : params.end();
      if (found == params.end()) return;
      const std::vector<Value>& args = call.args[1].as<Tuple>()->values;
      std::erase_if(found->second, [&](int64_t param) {
        const auto i = static_cast<size_t>(param);
        const auto* weights = i < args.size() ? args[i].as<Constant>() : nullptr;
        return !weights || !is_finite(*weights->data);
      });
    });
  for (const auto& [name, finite] : params)
    if (!finite.empty())
      module.set(name, module.find<tir::PrimFunc>(name)->with_attr(tir::kFiniteParams, finite));
  return module;
}

}  // namespace tenon::graph
