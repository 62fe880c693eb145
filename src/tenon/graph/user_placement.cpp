// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/user_placement.h"

#include "tenon/support/diagnostics.h"

namespace tenon::graph {

static constexpr const char* kBackends = "libs";
static constexpr const char* kLibraries = "call_by_name";
static constexpr const char* kNodes = "place";
static constexpr const char* kKernelNodes = "place_kernels";
static constexpr const char* kMeasured = "place_measured";

static std::vector<std::string> names_of(const Attrs& attrs, const char* name) {
  const AttrValue* value = attrs.find(name);
  if (!value) return {};
  if (auto names = attrs.strings(name)) return std::move(*names);
  throw CompileError(kBadOption, {}, "module attribute `{}` is {}; expected a list of back ends",
                     name, value->str());
}

UserPlacement::Providers providers_of(const Attrs& attrs, const char* name, const Origin& origin) {
  UserPlacement::Providers out;
  const AttrValue* value = attrs.find(name);
  if (!value) return out;
  const auto* map = value->as<AttrValue::Map>();
  if (!map)
    throw CompileError(kBadPlacement, origin,
                       "attribute `{}` is {}; expected {{\"lv3\": \"dnnl\"}}", name, value->str());
  for (const auto& [key, provider] : *map) {
    const auto* text = provider.as<std::string>();
    if (!text)
      throw CompileError(kBadPlacement, origin,
                         "placement of `{}` is {}; expected a back end, a pattern or \"none\"", key,
                         provider.str());
    out.emplace(key, *text);
  }
  return out;
}

UserPlacement UserPlacement::of(const IRModule& module) {
  const Attrs& attrs = module.attrs;
  return {names_of(attrs, kBackends), names_of(attrs, kLibraries), providers_of(attrs, kNodes, {}),
          providers_of(attrs, kKernelNodes, {}), providers_of(attrs, kMeasured, {})};
}

IRModule UserPlacement::in(IRModule module) const {
  const auto put = [&](const char* name, const auto& value, AttrValue as_attribute) {
    if (value.empty())
      module.attrs.erase(name);
    else
      module.attrs.set(name, std::move(as_attribute));
  };
  const auto map = [](const Providers& providers) {
    return AttrValue::Map(providers.begin(), providers.end());
  };
  put(kBackends, backends, AttrList(backends.begin(), backends.end()));
  put(kLibraries, libraries, AttrList(libraries.begin(), libraries.end()));
  put(kNodes, nodes, map(nodes));
  put(kKernelNodes, kernels, map(kernels));
  put(kMeasured, measured, map(measured));
  return module;
}

}  // namespace tenon::graph
