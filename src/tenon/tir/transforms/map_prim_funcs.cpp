// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tenon/support/parallel.h"
#include "tenon/support/target.h"
#include "tenon/tir/transforms.h"

namespace tenon::tir {

bool is_c_target(const IRModule& module) {
  const auto target = module.attrs.get<std::string>("target");
  return target && parse_target(*target).kind == "c";
}

IRModule map_prim_funcs(IRModule module,
                        const std::function<Ref<PrimFunc>(const Ref<PrimFunc>&)>& f) {
  struct Item {
    std::string name;
    Ref<PrimFunc> function, next;
  };
  std::vector<Item> items;
  for (const auto& [name, function] : module.functions())
    if (const auto prim = cast<PrimFunc>(function)) items.push_back({name, prim, {}});
  for_each_in_parallel(items.size(), [&](size_t i) { items[i].next = f(items[i].function); });
  for (const Item& item : items)
    if (!item.next.same_as(item.function)) module.set(item.name, item.next);
  return module;
}

// Constants and names: nothing that a pass on statements or arithmetic could change.
static bool is_plain(const NodePtr& arg) {
  const auto plain = [](const NodePtr& node) { return node.as<IntImm>() || node.as<Var>(); };
  const auto* region = arg.as<BufferRegion>();
  if (!region) return plain(arg);
  return std::all_of(region->region.begin(), region->region.end(),
                     [&](const Range& range) { return plain(range.min) && plain(range.extent); });
}

// A long list of calls over fixed memory, as a program's entry is.
static bool is_call_list(const PrimFunc& function) {
  const auto* list = function.body.as<Seq>();
  return list && std::all_of(list->stmts.begin(), list->stmts.end(), [](const Stmt& stmt) {
           if (stmt.as<AllocBuffer>() || stmt.as<AllocConst>()) return true;
           if (const auto* view = stmt.as<DeclBuffer>()) {
             if (view->data.as<Var>()) return true;
             const auto* address = view->data.as<Call>();
             const auto* element = address && address->is(IntrinsicId::kAddressOf)
                                       ? address->args.at(0).as<BufferLoad>()
                                       : nullptr;
             return element &&
                    std::all_of(element->indices.begin(), element->indices.end(), is_plain);
           }
           const auto* call = stmt.as<CallTir>();
           return call && std::all_of(call->args.begin(), call->args.end(), is_plain);
         });
}

IRModule map_kernels(IRModule module, const std::function<Ref<PrimFunc>(const Ref<PrimFunc>&)>& f) {
  return map_prim_funcs(std::move(module), [&](const Ref<PrimFunc>& function) {
    return is_call_list(*function) ? function : f(function);
  });
}

}  // namespace tenon::tir
