#include "tenon/tir/transforms.h"

namespace tenon::tir {

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
