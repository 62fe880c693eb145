// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/plugin/run_pass.h"

#include "tenon/backend/plugin/answer.h"
#include "tenon/backend/plugin/choose.h"
#include "tenon/graph/verifier.h"
#include "tenon/script/parser.h"
#include "tenon/script/printer.h"
#include "tenon/support/diagnostics.h"
#include "tenon/support/plugin_codes.h"
#include "tenon/tir/analysis/verifier.h"

namespace tenon::plugin {

IRModule run_pass(const Descriptor& d, size_t pass, IRModule module, const Attrs& options) {
  script::ConstantStore constants;
  const std::string text = script::print(module, {.constants = &constants});
  TenonAnswer answer;
  answer.backend = d.name;
  answer.callback = TenonAnswer::Callback::kPass;
  answer.subject = d.name + "." + d.passes[pass].name;
  answer.arguments = &options;
  answer.choose_in = [&](const std::string& function, const std::string& variable) {
    const auto in = module.find<graph::Function>(function);
    return in ? chosen_kernel(module, *in, variable) : std::nullopt;
  };
  const std::string what = fmt::format("pass `{}` of {}", d.passes[pass].name, d.words());
  const int32_t status = d.hooks->run_pass(what, pass, text, answer);
  if (!answer.fault.empty()) throw CompileError(kBadBackend, {}, "{} {}", what, answer.fault);
  if (answer.is_refused)
    throw CompileError(kBackendRefused, {}, "{} refused ({}): {}", what, answer.code, answer.words);
  if (status != 0)
    throw CompileError(kBadBackend, {}, "{} returned {} without a reason", what, status);
  if (answer.emitted.empty()) return module;
  if (answer.emitted.size() > 1)
    throw CompileError(kBadBackend, {}, "{} gave {} modules; expected one", what,
                       answer.emitted.size());
  try {
    const auto file = std::make_shared<const SourceFile>(
        SourceFile{"<" + answer.subject + ">", answer.emitted[0].bytes});
    IRModule out = script::parse_module(file, {.constants = &constants});
    Diagnostics diagnostics;
    graph::verify(out, diagnostics);
    tir::verify(out, diagnostics);
    diagnostics.throw_if_any();
    return out;
  } catch (const CompileError& error) {
    std::vector<Diagnostic> found = error.diagnostics();
    found.insert(found.begin(),
                 Diagnostic{kBadBackend, {}, what + " gave a module that is not well formed", {}});
    throw CompileError(std::move(found));
  }
}

}  // namespace tenon::plugin
