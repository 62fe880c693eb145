#include "tenon/support/target.h"
#include "tenon/tir/transforms.h"

namespace tenon::tir {

bool is_c_target(const IRModule& module) {
  const auto target = module.attrs.get<std::string>("target");
  return target && parse_target(*target).kind == "c";
}

IRModule map_prim_funcs(IRModule module,
                        const std::function<Ref<PrimFunc>(const Ref<PrimFunc>&)>& f) {
  IRModule out = module;
  for (const auto& [name, function] : module.functions()) {
    const auto prim = cast<PrimFunc>(function);
    if (!prim) continue;
    const Ref<PrimFunc> next = f(prim);
    if (!next.same_as(prim)) out.set(name, next);
  }
  return out;
}

}  // namespace tenon::tir
