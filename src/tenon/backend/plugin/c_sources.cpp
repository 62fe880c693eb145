// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/plugin/c_sources.h"

#include <algorithm>

#include "tenon/graph/external_modules.h"

namespace tenon::plugin {

using graph::ExternalModule;

const char* const kEndOfPreludes = "/* -- functions -- */\n";

static std::string line_ended(std::string text) {
  if (text.empty() || text.back() != '\n') text += '\n';
  return text;
}

void add_c_function(IRModule& module, const CFunction& function) {
  std::vector<ExternalModule> all = graph::external_modules(module);
  std::string preludes, functions;
  std::vector<std::string> symbols, link;
  const auto mine = std::find_if(all.begin(), all.end(), [&](const ExternalModule& item) {
    return item.kind == ExternalModule::Kind::kC && item.origin == function.backend && item.code;
  });
  if (mine != all.end()) {
    const auto bytes = mine->code->data();
    const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const size_t end = text.find(kEndOfPreludes);
    if (end != std::string::npos) {
      preludes = text.substr(0, end);
      functions = text.substr(end + std::string(kEndOfPreludes).size());
      symbols = mine->symbols;
      link = mine->link;
      all.erase(mine);
    }
  }
  for (const std::string& prelude : function.preludes) {
    const std::string text = line_ended(prelude);
    if (preludes.find(text) == std::string::npos) preludes += text;
  }
  functions += line_ended(function.source);
  symbols.push_back(function.symbol);
  for (const std::string& library : function.link)
    if (std::find(link.begin(), link.end(), library) == link.end()) link.push_back(library);
  ExternalModule merged = ExternalModule::of_bytes(
      ExternalModule::Kind::kC, preludes + kEndOfPreludes + functions, symbols, function.backend);
  merged.link = std::move(link);
  module.attrs.erase("external_mods");
  for (const ExternalModule& other : all) graph::add_external_module(module, other);
  graph::add_external_module(module, merged);
}

}  // namespace tenon::plugin
