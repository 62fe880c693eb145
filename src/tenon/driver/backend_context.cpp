// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/backend_context.h"

#include <set>

#include "tenon/driver/compiler.h"
#include "tenon/driver/pipelines.h"
#include "tenon/graph/transforms.h"

namespace tenon {

// What `name` calls, directly or not.
static std::set<std::string> reached_from(const IRModule& module, const std::string& name) {
  std::set<std::string> reached;
  std::vector<std::string> pending = {name};
  const auto add = [&](const std::string& callee) {
    if (module.contains(callee) && reached.insert(callee).second) pending.push_back(callee);
  };
  while (!pending.empty()) {
    const BaseFunc function = module.find(pending.back());
    pending.pop_back();
    walk<graph::FuncRef>(function, [&](const graph::FuncRef& ref) { add(ref.name); });
    walk<GlobalVar>(function, [&](const GlobalVar& ref) { add(ref.name); });
  }
  return reached;
}

// One graph function by the passes of the standard pipeline.
static IRModule lower_one(IRModule module, const std::string& name) {
  const auto function = module.find<graph::Function>(name);
  if (!function) throw CompileError(kUndefined, {}, "the module has no graph function `{}`", name);
  // Others may be half done: called as graph functions, and PrimFuncs already.
  IRModule alone;
  alone.attrs = module.attrs;
  for (const std::string& reached : reached_from(module, name))
    alone.set(reached, module.find(reached));
  const Ref<graph::Function> entry = with(*function, [&](graph::Function& copy) {
    copy.is_private = false;
    for (const char* attr : {"Composite", "Compiler", "Codegen", "Primitive", "global_symbol"})
      copy.attrs.erase(attr);
  });
  alone.set("main", entry);
  if (!alone.attrs.contains("target")) alone.attrs.set("target", resolve("native").str());
  PipelineOptions options;
  options.verify = false;  // the runner around this verifies what comes of it
  Pipeline pipeline = pipeline_until("FuseTIR");
  // The back end asked for own code, and is in the middle of its work.
  std::erase_if(pipeline, [](const Pass& pass) {
    return pass.name == "AnnotatePlacement" || pass.name == "DispatchPlacement" ||
           pass.name == "MergeCompositeFunctions" || pass.name == "RunCodegen";
  });
  alone = run_pipeline(std::move(alone), pipeline, options).module;
  const auto lowered = graph::lower_function(alone, *alone.find<graph::Function>("main"));
  module.set(name, lowered);
  for (const auto& [kernel, base] : alone.functions())
    if (!base.as<graph::Function>() && !module.contains(kernel)) module.set(kernel, base);
  return module;
}

graph::BackendContext backend_context() {
  graph::BackendContext context;
  context.lower = lower_one;
  return context;
}

}  // namespace tenon
