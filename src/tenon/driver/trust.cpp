// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/trust.h"

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <set>

#include "tenon/backend/plugin/plugin.h"
#include "tenon/graph/external_modules.h"
#include "tenon/support/limit_codes.h"

namespace tenon {

namespace {

using graph::ExternalModule;

struct Loaded {
  std::mutex mutex;
  std::set<std::string> code, names;  // by content, and of libraries
};
Loaded& loaded() {
  static Loaded one;
  return one;
}

bool is_named(const std::string& library, const std::vector<std::string>& link) {
  if (!plugin::plugin_path(library).empty()) return true;
  return std::any_of(link.begin(), link.end(), [&](const std::string& file) {
    return std::filesystem::path(file).filename() == library;
  });
}

}  // namespace

void remember_loaded_code(const IRModule& module) {
  if (!module.attrs.contains("external_mods")) return;
  Loaded& all = loaded();
  const std::lock_guard lock(all.mutex);
  for (const ExternalModule& artefact : graph::external_modules(module)) {
    if (artefact.kind == ExternalModule::Kind::kHost) continue;  // words, no code
    if (artefact.code) all.code.insert(artefact.code->content_hash());
    if (!artefact.name.empty()) all.names.insert(artefact.name);
    all.names.insert(artefact.link.begin(), artefact.link.end());
  }
}

void check_loaded_code(const IRModule& module, const std::vector<std::string>& link) {
  Loaded& all = loaded();
  const std::lock_guard lock(all.mutex);
  const std::vector<ExternalModule> artefacts = graph::external_modules(module);
  for (size_t i = 0; i < artefacts.size(); ++i) {
    const ExternalModule& artefact = artefacts[i];
    if (artefact.kind == ExternalModule::Kind::kHost) continue;
    if (artefact.code && all.code.count(artefact.code->content_hash()))
      throw CompileError(kUntrustedCode, {},
                         "item {} of `external_mods` is code of kind `{}` that came with the "
                         "model; --allow-code links it (docs/trust.md)",
                         i, graph::name_of(artefact.kind));
    std::vector<std::string> libraries = artefact.link;
    if (!artefact.name.empty()) libraries.push_back(artefact.name);
    for (const std::string& library : libraries)
      if (all.names.count(library) && !is_named(library, link))
        throw CompileError(kUntrustedCode, {},
                           "item {} of `external_mods` asks for library `{}`; name it with "
                           "--link, or --allow-code takes what a model asks for (docs/trust.md)",
                           i, library);
  }
}

}  // namespace tenon
