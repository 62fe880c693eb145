// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/tunable.h"

#include <algorithm>
#include <set>

#include "tenon/driver/measure.h"
#include "tenon/driver/tensors.h"
#include "tenon/graph/expr.h"
#include "tenon/graph/transforms.h"
#include "tenon/graph/transforms/partition.h"
#include "tenon/script/printer.h"
#include "tenon/support/remarks.h"
#include "tenon/tir/schedule/default_schedule.h"
#include "tenon/tir/schedule/schedule_in_stretches.h"
#include "tenon/tune/part.h"
#include "tenon/tune/placement.h"
#include "tenon/tune/proposals.h"

namespace tenon {

// The module as the pass sees it; nothing where it does not run.
static std::optional<IRModule> module_before(std::string_view pass, const IRModule& prepared,
                                             const CompileRequest& request) {
  PipelineInput input = pipeline_input(prepared, request);
  const auto end = std::find_if(input.passes.begin(), input.passes.end(),
                                [&](const Pass& each) { return each.name == pass; });
  if (end == input.passes.end()) return std::nullopt;
  input.passes.erase(end, input.passes.end());
  return run_pipeline(std::move(input.module), input.passes,
                      {.verify = false, .progress = request.pipeline.progress})
      .module;
}

// The function with what decides how it is compiled, and the functions of libraries that it may call.
static IRModule alone(const IRModule& module, const std::string& name, BaseFunc function) {
  IRModule out;
  for (const char* attr : {"target", tir::kFloatingPoint, "backend_options"})
    if (const AttrValue* value = module.attrs.find(attr)) out.attrs.set(attr, *value);
  out.set(name, std::move(function));
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

// The size of a symbol to measure with.
static void add_dim(tune::Job& job, const Var& symbol, const std::map<std::string, int64_t>& dims) {
  const auto given = dims.find(symbol.name);
  job.dims[symbol.name] = given == dims.end() ? kDefaultDim : given->second;
}

TunableKernels tunable_kernels(const IRModule& prepared, const CompileRequest& request,
                               const std::map<std::string, int64_t>& dims) {
  TunableKernels out;
  const std::optional<IRModule> before = module_before(kTakesPlans, prepared, request);
  if (!before) return out;
  const IRModule& module = *before;
  out.constant_bytes = graph::bytes_of_constants(module);
  std::map<std::string, int64_t> calls;
  for (const auto& [name, function] : module.functions())
    if (function.as<graph::Function>())
      walk<graph::FuncRef>(function, [&](const graph::FuncRef& ref) { ++calls[ref.name]; });
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
    found.module = alone(module, name, kernel);
    if (tune::Proposer(found.module, found.job.hash, 1).default_plan().empty()) {
      out.left.emplace_back(name, "none of its blocks has a plan");
      continue;
    }
    found.job.kernel = name;
    found.job.module = script::print(found.module);
    found.job.target = request.target.str();
    for (const Ref<Var>& symbol : tir::symbolic_vars(*kernel)) add_dim(found.job, *symbol, dims);
    known.emplace(found.job.hash, out.kernels.size());
    out.kernels.push_back(std::move(found));
  }
  return out;
}

std::vector<tune::Kernel> tunable_parts(const IRModule& prepared, const CompileRequest& request,
                                        const std::map<std::string, int64_t>& dims) {
  std::vector<tune::Kernel> out;
  if (tune::libs_of(prepared).empty()) return out;
  const std::optional<IRModule> module = module_before("AnnotatePlacement", prepared, request);
  if (!module) return out;
  std::map<std::string, size_t> known;
  std::map<std::pair<std::string, std::string>, int64_t> calls;  // by hash and provider
  std::set<std::string> names;
  for (const tune::OfferedPart& offered : tune::offered_parts(*module, tune::libs_of(*module))) {
    if (!tune::is_called_on_tensors(*offered.part.function)) continue;
    const std::string& hash = offered.part.hash;
    const auto [place, is_new] = known.emplace(hash, out.size());
    if (is_new) {
      tune::Kernel found;
      found.job.hash = hash;
      // "conv2d_relu" of "dnnl.conv2d_relu".
      const std::string hint =
          graph::identifier(offered.provider.substr(offered.provider.find('.') + 1));
      found.job.kernel = hint;
      for (int64_t i = 1;
           module->contains(found.job.kernel) || !names.insert(found.job.kernel).second; ++i)
        found.job.kernel = fmt::format("{}_{}", hint, i);
      found.module = alone(*module, found.job.kernel, offered.part.function);
      found.job.module = script::print(found.module);  // as own code
      found.job.target = request.target.str();
      for (const Ref<graph::Var>& param : offered.part.function->params)
        walk<Var>(param->type, [&](const Var& symbol) { add_dim(found.job, symbol, dims); });
      out.push_back(std::move(found));
    }
    tune::Kernel& part = out[place->second];
    const int64_t count = ++calls[{hash, offered.provider}];
    if (count == 1)
      part.providers.push_back({offered.provider, script::print(alone(*module, part.job.kernel,
                                                                      offered.part.function))});
    part.calls = std::max(part.calls, count);
  }
  return out;
}

}  // namespace tenon
