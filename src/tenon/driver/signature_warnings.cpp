// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/signature_warnings.h"

#include <algorithm>
#include <set>

#include "tenon/driver/load.h"
#include "tenon/driver/warnings.h"
#include "tenon/graph/transforms/library_call.h"
#include "tenon/support/nearest.h"
#include "tenon/support/usage_codes.h"

namespace tenon {

namespace {

std::string list_of(const std::vector<std::string>& names) {
  constexpr size_t kMostNames = 8;
  std::string out;
  for (size_t i = 0; i < names.size() && i < kMostNames; ++i)
    out += (i ? ", `" : "`") + names[i] + "`";
  return names.size() > kMostNames ? out + ", ..." : out;
}

}  // namespace

void warn_of_signatures(const std::vector<std::string>& files,
                        const std::vector<std::string>& libraries,
                        const std::vector<std::string>& composites,
                        const backend::ProgramFunctions& functions) {
  if (files.empty()) return;
  std::set<std::string> called;  // symbols
  for (const backend::LibraryFunction& library : functions.libraries())
    called.insert(library.symbol);
  for (const backend::PackedFunction& packed : functions.packed()) called.insert(packed.name);
  std::vector<std::string> functions_called_for;  // what composites of the libraries are called
  for (const std::string& composite : composites)
    for (const std::string& library : libraries)
      if (composite.starts_with(library + "."))
        functions_called_for.push_back(composite.substr(library.size() + 1));
  std::vector<std::string> declared_names;
  for (const std::string& file : files) {
    const IRModule declared = load_module(file);
    std::set<std::string> found;  // functions that a composite finds
    for (const std::string& composite : composites)
      if (const auto signature = graph::signature_for(declared, composite))
        found.insert(signature->name);
    bool any = false;
    for (const auto& [name, function] : declared.functions()) {
      const auto* external = function.as<tir::ExternFunction>();
      if (!external) continue;
      const std::string stated = external->attrs.get<std::string>("composite").value_or(name);
      declared_names.push_back(stated);
      const bool is_called = called.count(external->symbol) > 0;
      any |= is_called;
      if (is_called || found.count(name) || functions_called_for.empty()) continue;
      any = true;  // it is told here
      warn(kNotUsed, external->origin,
           "--signatures {}: `{}` is the signature of no composite; composites are {}{}", file,
           stated, list_of(functions_called_for), did_you_mean(stated, functions_called_for));
    }
    if (!any) warn(kNotUsed, {}, "--signatures {}: the program calls none of its functions", file);
  }
  for (const backend::LibraryFunction& library : functions.libraries()) {
    if (!library.function || !library.function->attrs.flag("derived")) continue;
    warn(kNotUsed, library.function->origin,
         "`{}` is called as `{}`, which follows from its inputs and outputs: --signatures declares "
         "no `{}`{}",
         library.symbol, library.function->prototype(), library.symbol,
         did_you_mean(library.symbol, declared_names));
  }
}

}  // namespace tenon
