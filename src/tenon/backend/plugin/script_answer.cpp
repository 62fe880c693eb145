// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/plugin/script_answer.h"

#include "tenon/graph/shape.h"
#include "tenon/script/parser.h"
#include "tenon/support/diagnostics.h"
#include "tenon/support/names.h"
#include "tenon/tir/analysis/verifier.h"
#include "tenon/tir/extern_function.h"

namespace tenon::plugin {

using tir::PrimFunc;

static CompileError fault(const ScriptAnswer& answer, const std::string& words) {
  return CompileError(kBadBackend, answer.origin, "{} {} {}", answer.what,
                      answer.given ? "gave a module" : "emitted TENON_TVMSCRIPT", words);
}

static IRModule parsed(const ScriptAnswer& answer) {
  try {
    const auto file = std::make_shared<const SourceFile>(
        SourceFile{"<" + answer.d.name + ": " + answer.entry + ">", answer.text});
    IRModule module = answer.given ? *answer.given : script::parse_module(file);
    Diagnostics diagnostics;
    tir::verify(module, diagnostics);
    diagnostics.throw_if_any();
    return module;
  } catch (const CompileError& error) {
    std::vector<Diagnostic> found = error.diagnostics();
    found.insert(found.begin(), fault(answer, "that is not well formed").first());
    throw CompileError(std::move(found));
  }
}

static void check_entry(const ScriptAnswer& answer, const PrimFunc& entry,
                        const std::vector<graph::Type>& wanted) {
  if (entry.params.size() != wanted.size())
    throw fault(answer, fmt::format("whose `{}` has {} parameters; expected {}", answer.entry,
                                    entry.params.size(), wanted.size()));
  for (size_t i = 0; i < wanted.size(); ++i) {
    const auto* tensor = wanted[i].as<graph::TensorType>();
    const auto& buffer = entry.buffers[i];
    const auto differs = [&] {
      return fault(answer,
                   fmt::format("whose `{}` takes {} as parameter {}; expected {}", answer.entry,
                               buffer ? fmt::format("{} of shape {}", buffer->dtype.str(),
                                                    tenon::str(buffer->shape))
                                      : "a scalar",
                               i, graph::str(wanted[i])));
    };
    if (!buffer || !tensor || !tensor->shape || buffer->dtype != tensor->dtype ||
        buffer->shape.size() != tensor->shape->size())
      throw differs();
    for (size_t k = 0; k < buffer->shape.size(); ++k) {
      const auto given = as_int(buffer->shape[k]), is = as_int((*tensor->shape)[k]);
      if (given && is ? *given != *is : given.has_value()) throw differs();
    }
  }
}

std::string add_script_functions(IRModule& module, const ScriptAnswer& answer,
                                 const std::vector<graph::Type>& wanted) {
  const IRModule given = parsed(answer);
  const auto entry = given.find<PrimFunc>(answer.entry);
  if (!entry)
    throw fault(answer,
                fmt::format("without a PrimFunc `{}`, the name that was asked for", answer.entry));
  check_entry(answer, *entry, wanted);
  std::map<std::string, std::string> names;
  for (const auto& [name, function] : given.functions()) {
    if (!function.as<PrimFunc>() && !function.as<tir::ExternFunction>())
      throw fault(answer, fmt::format("with `{}`, which is neither a PrimFunc nor an extern "
                                      "function",
                                      name));
    const auto is_taken = [&, &function = function](const std::string& other) {
      return module.contains(other) && !structural_equal(module.find(other), function);
    };
    names[name] = fresh_name(name, is_taken);
  }
  for (const auto& [name, function] : given.functions()) {
    BaseFunc renamed = rewrite(function, [&](const NodePtr& node) -> std::optional<NodePtr> {
      const auto* ref = node.as<GlobalVar>();
      const auto known = ref ? names.find(ref->name) : names.end();
      if (known == names.end() || known->second == ref->name) return std::nullopt;
      return make<GlobalVar>(known->second);
    });
    if (const auto prim = cast<PrimFunc>(renamed)) {
      renamed = with(*prim, [&](PrimFunc& copy) {
        copy.is_private = true;
        copy.attrs.erase("global_symbol");
      });
    }
    module.set(names[name], renamed);
  }
  return names[answer.entry];
}

}  // namespace tenon::plugin
