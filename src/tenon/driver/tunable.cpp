// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/tunable.h"

#include <algorithm>

#include "tenon/driver/measure.h"
#include "tenon/driver/tensors.h"
#include "tenon/graph/expr.h"
#include "tenon/script/printer.h"
#include "tenon/support/remarks.h"
#include "tenon/tir/schedule/default_schedule.h"
#include "tenon/tir/schedule/schedule_in_stretches.h"
#include "tenon/tune/proposals.h"

namespace tenon {

// The passes in front of the one that plans.
static Pipeline before_plans(Pipeline pipeline) {
  const auto end = std::find_if(pipeline.begin(), pipeline.end(),
                                [](const Pass& pass) { return pass.name == kTakesPlans; });
  pipeline.erase(end, pipeline.end());
  return pipeline;
}

// The kernel with what decides how it is scheduled, and the functions of libraries that it may call.
static IRModule alone(const IRModule& module, const std::string& name) {
  IRModule out;
  for (const char* attr : {"target", tir::kFloatingPoint})
    if (const auto value = module.attrs.get<std::string>(attr)) out.attrs.set(attr, *value);
  out.set(name, module.find(name));
  for (const auto& [other, function] : module.functions())
    if (function.as<tir::ExternFunction>()) out.set(other, function);
  return out;
}

// Why no plan can be measured of a kernel; empty where one can.
static std::string why_not(const tir::PrimFunc& kernel) {
  if (tir::has_stretches(kernel)) return "it is scheduled between the calls that it makes";
  bool calls = false;
  walk<tir::CallTir>(kernel.body, [&](const tir::CallTir&) { calls = true; });
  if (calls) return "it calls other kernels";
  if (inputs_of(kernel) < 0) return "it is not called on tensors alone";
  for (const Ref<tir::Buffer>& buffer : kernel.buffers)
    for (const Expr& dim : buffer->shape)
      if (!as_int(dim) && !dim.as<Var>()) return "a size is computed from others";
  return "";
}

TunableKernels tunable_kernels(const IRModule& prepared, const CompileRequest& request,
                               const std::map<std::string, int64_t>& dims) {
  PipelineInput input = pipeline_input(prepared, request);
  const IRModule module = run_pipeline(std::move(input.module), before_plans(input.passes),
                                       {.verify = false, .progress = request.pipeline.progress})
                              .module;
  TunableKernels out;
  std::map<std::string, int64_t> calls;
  for (const auto& [name, function] : module.functions()) {
    if (!function.as<graph::Function>()) continue;
    walk<graph::FuncRef>(function, [&](const graph::FuncRef& ref) { ++calls[ref.name]; });
    walk<graph::Constant>(function, [&](const graph::Constant& constant) {
      out.constant_bytes += constant.data->bytes();
    });
  }
  std::map<std::string, size_t> known;
  for (const auto& [name, function] : module.functions()) {
    const Ref<tir::PrimFunc> kernel = cast<tir::PrimFunc>(function);
    if (!kernel || !tir::root_block(*kernel) || kernel->attrs.flag("tir.is_scheduled")) continue;
    if (std::string why = why_not(*kernel); !why.empty()) {
      out.left.emplace_back(name, std::move(why));
      continue;
    }
    tune::Kernel found;
    found.calls = std::max<int64_t>(1, calls[name]);
    found.job.hash = tir::plan_hash(kernel);
    if (const auto before = known.find(found.job.hash); before != known.end()) {
      out.kernels[before->second].calls += found.calls;
      continue;
    }
    found.module = alone(module, name);
    if (tune::Proposer(found.module, found.job.hash, 1).default_plan().empty()) {
      out.left.emplace_back(name, "none of its blocks has a plan");
      continue;
    }
    found.job.kernel = name;
    found.job.module = script::print(found.module);
    found.job.target = request.target.str();
    for (const Ref<Var>& symbol : tir::symbolic_vars(*kernel)) {
      const auto given = dims.find(symbol->name);
      found.job.dims[symbol->name] = given == dims.end() ? kDefaultDim : given->second;
    }
    known.emplace(found.job.hash, out.kernels.size());
    out.kernels.push_back(std::move(found));
  }
  return out;
}

}  // namespace tenon
