// SPDX-License-Identifier: Apache-2.0
#include "tenon/tune/kernel_placement.h"

#include <algorithm>

#include "tenon/graph/backend.h"
#include "tenon/graph/builder.h"
#include "tenon/graph/infer.h"
#include "tenon/graph/transforms.h"
#include "tenon/graph/transforms/convert_layout.h"
#include "tenon/graph/transforms/kernel_operators.h"
#include "tenon/graph/user_placement.h"
#include "tenon/support/remarks.h"
#include "tenon/tune/estimate.h"
#include "tenon/tune/placement.h"

namespace tenon::tune {

using graph::Backend;
using graph::FusionPattern;

bool has_kernel_pattern(const std::string& provider) {
  const auto backend = graph::find_backend(graph::backend_part(provider));
  return backend && std::any_of(backend->patterns.begin(), backend->patterns.end(),
                                [&](const FusionPattern& pattern) {
                                  return pattern.tir &&
                                         (provider == backend->name || provider == pattern.name);
                                });
}

graph::SplitOptions kernel_placement(const IRModule& module) {
  graph::SplitOptions options;
  std::vector<std::string> names = libs_of(module);
  const size_t asked = names.size();
  options.user_placement = graph::UserPlacement::of(module).kernels;
  for (const auto& [node, provider] : options.user_placement) {
    const auto backend = graph::find_backend(graph::backend_part(provider));
    if (backend && std::find(names.begin(), names.end(), backend->name) == names.end())
      names.push_back(backend->name);
  }
  for (size_t i = 0; i < names.size(); ++i) {
    const auto backend = graph::find_backend(names[i]);
    for (const FusionPattern& pattern : backend->patterns)
      if (pattern.tir) options.patterns.push_back(pattern);
    if (i >= asked) options.on_request_only.insert(names[i]);
  }
  IRModule copy = module;
  for (FusionPattern& pattern : graph::take_kernel_patterns(copy))
    options.patterns.push_back(std::move(pattern));
  if (names.empty()) return options;  // nobody declares a cost
  const Target target = graph::target_of(module);
  options.weigh = [target](const tir::PrimFunc& kernel,
                           const std::vector<Ref<tir::PrimFunc>>& copies,
                           std::optional<double> declared) -> graph::KernelWeight {
    const double own = estimated_seconds(kernel, target);
    if (!declared) return {own};
    double seconds = *declared;
    for (const Ref<tir::PrimFunc>& copy : copies) seconds += estimated_seconds(*copy, target);
    const std::string why = cost_refusal(seconds, own);
    if (!why.empty()) return {seconds, graph::Verdict::refuse("cost", why)};
    return {seconds};
  };
  return options;
}

// Whether a pattern takes the contraction of a call out of the kernel that the call becomes. Why
// not, where it was found: `remarks`.
static bool takes_contraction(const IRModule& module, const graph::SplitOptions& options,
                              const graph::Call& call, std::vector<Remark>& remarks) {
  graph::SplitOptions here = options;
  here.user_placement.clear();
  bool is_kept = false;
  graph::each_part(call.origin, [&](const Origin& part) {
    const auto placed = options.user_placement.find(graph::placement_name(part));
    if (placed == options.user_placement.end()) return;
    is_kept |= placed->second == graph::kNoProvider;
    here.weigh = {};
    std::erase_if(here.patterns, [&](const FusionPattern& pattern) {
      return placed->second != pattern.name && placed->second != graph::backend_part(pattern.name);
    });
    here.on_request_only.clear();
  });
  if (is_kept || here.patterns.empty()) return false;
  const RemarkScope scope;
  IRModule alone;
  alone.attrs = module.attrs;
  graph::BlockBuilder builder(alone);
  std::vector<Ref<graph::Var>> params;
  std::vector<graph::Value> args;
  for (const graph::Value& arg : call.args) {
    const bool is_tensor = graph::type_of(arg).as<graph::TensorType>() != nullptr;
    args.push_back(arg);
    if (!is_tensor || arg.as<graph::Constant>()) continue;
    params.push_back(make<graph::Var>(fmt::format("arg{}", params.size()), graph::type_of(arg)));
    args.back() = params.back();
  }
  builder.begin_function(params);
  builder.set_origin(call.origin);
  const graph::Value result = builder.emit(
      make<graph::Call>(call.op, std::move(args), call.attrs, call.type_args, call.origin));
  alone.set("main", builder.end_function(result));
  alone = graph::split_call_tir_by_pattern(graph::legalize_ops(std::move(alone)), here);
  for (const auto& [name, function] : alone.functions()) {
    const auto kernel = cast<tir::PrimFunc>(function);
    if (!kernel || !kernel->attrs.contains("Composite")) continue;
    for (const Ref<tir::Block>& block : tir::blocks_of(*kernel))
      if (tir::work_of(*block).kind == tir::WorkKind::kContracts) return true;
  }
  for (const Remark& remark : scope.remarks())
    if (remark.decision && remark.decision->kind == Decision::Kind::kRefused &&
        remark.decision->step == Decision::Step::kKernelPatterns)
      remarks.push_back(remark);
  return false;
}

IRModule convert_layout_beside_kernels(IRModule module) {
  const graph::SplitOptions options = kernel_placement(module);
  if (options.patterns.empty()) return graph::convert_layout(std::move(module));
  const IRModule given = module;
  return graph::convert_layout(std::move(module), {[&](const graph::Call& call) {
                                 std::vector<Remark> refused;
                                 const bool takes =
                                     takes_contraction(given, options, call, refused);
                                 for (Remark& remark : refused) record(std::move(remark));
                                 return takes;
                               }});
}

}  // namespace tenon::tune
