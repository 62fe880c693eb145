// SelectKernels: the module's own kernels take the calls of their operators before any other pass
// changes these.
#include "tenon/graph/kernels.h"
#include "tenon/graph/transforms/rebuild.h"

namespace tenon::graph {

IRModule select_kernels(IRModule module) {
  const KernelTable table(module);
  if (table.empty()) return module;
  const std::vector<IRModule::Entry> entries = module.functions();
  for (const auto& [name, function] : entries) {
    const auto graph = cast<Function>(function);
    if (!graph || declares_operator(*graph) || graph->attrs.contains("Pattern")) continue;
    module.set(name, rebuild(module, graph,
                             [&](BlockBuilder& builder, const Binding&,
                                 const Value& value) -> std::optional<Value> {
                               const auto* call = value.as<Call>();
                               return call ? table.use(builder, *call) : std::nullopt;
                             }));
  }
  return module;
}

}  // namespace tenon::graph
