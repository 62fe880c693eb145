// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/transforms/unit_operators.h"

#include "tenon/graph/arithmetic.h"
#include "tenon/graph/op.h"
#include "tenon/graph/operator_attributes.h"
#include "tenon/graph/transforms/kernel_operators.h"
#include "tenon/support/remarks.h"

namespace tenon::graph {

std::vector<CallSite> sites_of(const IRModule& module, const std::string& name) {
  std::vector<CallSite> sites;
  for (const auto& [other, function] : module.functions())
    walk<Binding>(function, [&](const Binding& binding) {
      const auto* call = binding.value.as<Call>();
      const auto* ref = call && !call->op ? call->callee.as<FuncRef>() : nullptr;
      if (ref && ref->name == name)
        sites.push_back({binding.var->name, binding.origin ? binding.origin : call->origin});
    });
  return sites;
}

namespace {

struct Inner {
  const Binding* binding;
  std::string composite;  // that it is of
};

}  // namespace

// The operators of a function and of those that it calls.
static void add_operators(const IRModule& module, const Function& function,
                          std::vector<Inner>& out) {
  const std::string composite = function.attrs.get<std::string>("Composite").value_or("");
  const std::vector<const Binding*> own = operator_bindings(function);
  size_t next = 0;
  walk<Binding>(function.body, [&](const Binding& binding) {
    const auto* call = binding.value.as<Call>();
    if (next < own.size() && own[next] == &binding) {
      ++next;
      if (!call->is("call_tir")) out.push_back({&binding, composite});
      return;
    }
    const auto* ref = call && !call->op ? call->callee.as<FuncRef>() : nullptr;
    const auto inner = ref ? module.find<Function>(ref->name) : nullptr;
    if (inner) add_operators(module, *inner, out);
  });
}

std::vector<UnitOperator> operators_of_unit(const IRModule& module, const std::string& name) {
  std::vector<UnitOperator> out;
  const auto function = module.find<Function>(name);
  if (!function) return out;
  std::vector<Inner> inner;
  add_operators(module, *function, inner);
  for (const CallSite& site : sites_of(module, name)) {
    std::vector<Origin> parts;
    each_part(site.origin, [&](const Origin& part) { parts.push_back(part); });
    for (size_t i = 0; i < inner.size(); ++i) {
      const Binding& binding = *inner[i].binding;
      const auto& call = *binding.value.as<Call>();
      UnitOperator op;
      op.composite = inner[i].composite;
      op.origin = parts.size() == inner.size() ? parts[i]
                  : binding.origin             ? binding.origin
                                               : call.origin;
      const bool is_node = op.origin && op.origin->kind != OriginInfo::Kind::kScript;
      op.subject = is_node ? op.origin.name() : site.variable;
      op.flop = 2 * macs_of(call, binding.var->type, SymbolicDims::kAsOne).value_or(0);
      out.push_back(std::move(op));
    }
  }
  return out;
}

void record_taken(const std::vector<UnitOperator>& operators, const std::string& provider,
                  const std::string& unit) {
  for (const UnitOperator& op : operators) {
    Decision decision{Decision::Step::kCodegen, Decision::Kind::kTaken, provider,
                      op.composite.empty() ? provider + "." + unit : op.composite};
    decision.flop = op.flop;
    record({"RunCodegen",
            op.subject,
            "placed",
            decision.candidate,
            {{"flop", op.flop}},
            "",
            op.origin,
            decision});
  }
}

void record_scratch(const std::string& unit, const std::string& provider, int64_t bytes,
                    const Origin& origin) {
  Decision decision{Decision::Step::kCodegen, Decision::Kind::kScratch, provider, unit};
  decision.bytes = bytes;
  record({"RunBackend",
          unit,
          "scratch",
          provider,
          {{"bytes", static_cast<double>(bytes)}},
          "",
          origin,
          decision});
}

}  // namespace tenon::graph
