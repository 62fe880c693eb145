// SPDX-License-Identifier: Apache-2.0
// Conditions of kernels that the program which calls Tenon decides.
#include "tenon/graph/kernel_checks.h"

#include <map>
#include <mutex>

namespace tenon::graph {

namespace {

struct Conditions {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<const KernelCondition>> by_name;
};

Conditions& conditions() {
  static Conditions all;
  return all;
}

}  // namespace

std::string register_condition(const std::string& like, KernelCondition condition) {
  Conditions& all = conditions();
  const std::lock_guard lock(all.mutex);
  std::string name = fmt::format("{}#{}", like, all.by_name.size() + 1);
  all.by_name.emplace(name, std::make_shared<const KernelCondition>(std::move(condition)));
  return name;
}

std::optional<KernelRefusal> registered_refusal(const OperatorKernel& kernel,
                                                const OperatorCall& call,
                                                const std::optional<Target>& target) {
  const auto name = kernel.function->attrs.get<std::string>("op_check");
  if (!name) return std::nullopt;
  std::shared_ptr<const KernelCondition> condition;
  {
    Conditions& all = conditions();
    const std::lock_guard lock(all.mutex);
    if (const auto found = all.by_name.find(*name); found != all.by_name.end())
      condition = found->second;
  }
  if (!condition)
    return KernelRefusal{"condition", fmt::format("its condition `{}` is of a program that has "
                                                  "ended",
                                                  *name)};
  const auto why = (*condition)(kernel, call, target);
  return why ? std::optional(KernelRefusal{"condition", *why}) : std::nullopt;
}

}  // namespace tenon::graph
