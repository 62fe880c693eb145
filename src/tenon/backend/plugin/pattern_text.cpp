// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/plugin/pattern_text.h"

#include "tenon/script/pattern_file.h"
#include "tenon/support/diagnostics.h"
#include "tenon/support/plugin_codes.h"

namespace tenon::plugin {

std::vector<graph::FusionPattern> read_pattern_text(const std::string& text,
                                                    const std::string& backend,
                                                    const std::string& words) {
  if (text.empty()) return {};
  try {
    const auto file =
        std::make_shared<const SourceFile>(SourceFile{"<patterns of " + backend + ">", text});
    const std::vector<graph::FusionPattern> patterns =
        script::read_pattern_file(file, {.backend = backend}).patterns;
    for (const graph::FusionPattern& pattern : patterns)
      if (!pattern.name.starts_with(backend + "."))
        throw CompileError(kBadPattern, pattern.origin,
                           "pattern `{}` is of another back end; expected `{}.` in front",
                           pattern.name, backend);
    if (patterns.empty()) throw CompileError(kBadPattern, {}, "the text has no pattern");
    return patterns;
  } catch (const CompileError& error) {
    std::vector<Diagnostic> found = error.diagnostics();
    found.insert(found.begin(),
                 Diagnostic{kBadPlugin, {}, words + " has patterns that cannot be read", {}});
    throw CompileError(std::move(found));
  }
}

}  // namespace tenon::plugin
