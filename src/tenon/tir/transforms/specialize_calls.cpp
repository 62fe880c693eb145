// SPDX-License-Identifier: Apache-2.0
// SpecializeCalls: a callee with symbolic dimensions gets a copy for each combination of constants
// that its callers give them.

#include "tenon/support/remarks.h"
#include "tenon/tir/call_transforms.h"
#include "tenon/tir/callee.h"
#include "tenon/tir/specialize.h"

namespace tenon::tir {

namespace {

class Specializer {
 public:
  explicit Specializer(IRModule module) : module_(std::move(module)) {}

  IRModule run() {
    std::vector<std::string> work;
    for (const auto& [name, function] : module_.functions())
      if (function.as<PrimFunc>()) work.push_back(name);
    // What a copy calls may be specialised in its turn.
    while (!work.empty()) {
      const std::string name = work.back();
      work.pop_back();
      const auto function = module_.find<PrimFunc>(name);
      std::vector<std::string> made;
      const auto next = rewrite(function, [&](const NodePtr& node) -> std::optional<NodePtr> {
        if (const auto* call = node.as<CallTir>()) {
          const auto callee = specialised(*call->callee, call->args, call->origin, made);
          if (!callee) return std::nullopt;
          return make<CallTir>(callee, call->args, call->annotations, call->origin);
        }
        if (const auto* call = node.as<Call>(); call && call->callee) {
          const auto callee = specialised(*call->callee, call->args, call->origin, made);
          if (!callee) return std::nullopt;
          return make<Call>(callee, call->args, call->result, call->origin);
        }
        return std::nullopt;
      });
      if (!next.same_as(function)) module_.set(name, next);
      work.insert(work.end(), made.begin(), made.end());
    }
    return std::move(module_);
  }

 private:
  Ref<GlobalVar> specialised(const GlobalVar& name, const std::vector<NodePtr>& args,
                             const Origin& origin, std::vector<std::string>& made) {
    const auto function = module_.find<PrimFunc>(name.name);
    if (!function || args.size() != function->params.size()) return {};
    const Callee callee = callee_of(name.name, function);
    const Substitution bound = bind_symbols(callee, args);
    Substitution constants;
    std::string key = name.name;
    for (const Ref<Var>& symbol : callee.symbols()) {
      const auto value = bound.find(symbol.get());
      const auto number =
          value == bound.end() ? std::nullopt : as_int(downcast<ExprNode>(value->second));
      key += number ? "_" + std::to_string(*number) : "_" + symbol->name;
      if (number) constants.emplace(symbol.get(), imm(symbol->dtype, *number));
    }
    if (constants.empty()) return {};
    const auto known = copies_.find(key);
    if (known != copies_.end()) return make<GlobalVar>(known->second, name.origin);
    const std::string copy = module_.add_unique(key, specialize(*function, constants));
    copies_.emplace(key, copy);
    made.push_back(copy);
    record({"SpecializeCalls",
            name.name,
            "specialised",
            "constant-dimensions",
            {{"symbols", static_cast<double>(constants.size())}},
            copy,
            origin});
    return make<GlobalVar>(copy, name.origin);
  }

  IRModule module_;
  std::map<std::string, std::string> copies_;
};

}  // namespace

IRModule specialize_calls(IRModule module) { return Specializer(std::move(module)).run(); }

}  // namespace tenon::tir
