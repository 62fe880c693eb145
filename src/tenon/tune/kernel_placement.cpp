#include "tenon/tune/kernel_placement.h"

#include <algorithm>

#include "tenon/graph/backend.h"
#include "tenon/graph/transforms.h"
#include "tenon/tune/estimate.h"
#include "tenon/tune/placement.h"

namespace tenon::tune {

using graph::Backend;
using graph::FusionPattern;

static const Backend* backend_of_name(const std::string& backend_or_pattern) {
  return graph::find_backend(backend_or_pattern.substr(0, backend_or_pattern.find('.')));
}

bool has_kernel_pattern(const std::string& wanted) {
  const Backend* backend = backend_of_name(wanted);
  return backend && std::any_of(backend->patterns.begin(), backend->patterns.end(),
                                [&](const FusionPattern& pattern) {
                                  return pattern.tir &&
                                         (wanted == backend->name || wanted == pattern.name);
                                });
}

graph::SplitOptions kernel_placement(IRModule& module) {
  graph::SplitOptions options;
  std::vector<std::string> names = libs_of(module);
  const size_t asked = names.size();
  if (const AttrValue* value = module.attrs.find(kPlaceKernels))
    if (const auto* map = value->as<AttrValue::Map>())
      for (const auto& [node, wanted] : *map)
        if (const auto* text = wanted.as<std::string>()) {
          options.by_hand[node] = *text;
          const Backend* backend = backend_of_name(*text);
          if (backend && std::find(names.begin(), names.end(), backend->name) == names.end())
            names.push_back(backend->name);
        }
  module.attrs.erase(kPlaceKernels);
  for (size_t i = 0; i < names.size(); ++i) {
    for (const FusionPattern& pattern : graph::find_backend(names[i])->patterns)
      if (pattern.tir) options.patterns.push_back(pattern);
    if (i >= asked) options.by_hand_only.insert(names[i]);
  }
  const Target target = graph::target_of(module);
  options.weigh = [target](const tir::PrimFunc& kernel,
                           const std::vector<Ref<tir::PrimFunc>>& copies,
                           std::optional<double> declared) -> graph::KernelWeight {
    const double own = estimated_seconds(kernel, target);
    if (!declared) return {own};
    double seconds = *declared;
    for (const Ref<tir::PrimFunc>& copy : copies) seconds += estimated_seconds(*copy, target);
    const std::string why = too_dear(seconds, own);
    if (!why.empty()) return {seconds, graph::Verdict::refuse("cost", why)};
    return {seconds};
  };
  return options;
}

}  // namespace tenon::tune
