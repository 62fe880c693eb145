// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/placement_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "tenon/driver/usage.h"
#include "tenon/graph/backend.h"
#include "tenon/support/nearest.h"

namespace tenon {

void PlacementOptions::add_to(CLI::App& app) {
  app.add_option(
      "--libs", libs,
      "back ends that may compute operators of the model, separated by commas, or none (the "
      "default)");
  app.add_option("--place", places,
                 "NODE=PROVIDER: a back end or a library, kernels or kernels.NAME (kernels of your "
                 "own), or none (our own code) computes the model's node NODE; may be repeated");
}

static std::vector<std::string> names_in(const std::string& list) {
  std::vector<std::string> names;
  for (const std::string& name : CLI::detail::split(list, ',')) {
    if (name.empty()) throw UsageError("--libs {}: a name is empty", list);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

static void check_backend(const std::string& name, const std::string& option) {
  if (graph::find_backend(name)) return;
  std::vector<std::string> known = {"none"};
  std::string list;
  for (const auto& backend : graph::all_backends()) {
    known.push_back(backend->name);
    list += backend->name + ", ";
  }
  throw UsageError("{}: this build has no back end `{}`{}; expected of: {}none", option, name,
                   did_you_mean(name, known), list);
}

// NODE=PROVIDER; a node's name may hold `=`.
static std::pair<std::string, std::string> place_of(const std::string& text) {
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    throw UsageError("--place {}: expected NODE=PROVIDER", text);
  return {text.substr(0, equals), text.substr(equals + 1)};
}

void PlacementOptions::check() const {
  if (libs != "none" && !libs.empty())
    for (const std::string& name : names_in(libs)) check_backend(name, "--libs " + libs);
  for (const std::string& text : places) {
    const std::string provider = place_of(text).second, name = graph::backend_part(provider);
    if (provider != graph::kNoProvider && name != graph::kKernels)
      check_backend(name, "--place " + text);
  }
}

graph::UserPlacement PlacementOptions::add_to(graph::UserPlacement user) const {
  check();
  if (libs == "none") {
    user.backends.clear();
  } else if (!libs.empty()) {
    std::vector<std::string> names = names_in(libs);
    for (const std::string& name : user.backends)
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    user.backends = std::move(names);
  }
  if (!places.empty()) user.nodes.clear();
  for (const std::string& text : places) {
    const auto [node, provider] = place_of(text);
    if (!user.nodes.emplace(node, provider).second)
      throw UsageError("--place {}: the node is placed twice", text);
  }
  return user;
}

}  // namespace tenon
