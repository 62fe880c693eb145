// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/verify.h"

#include "tenon/graph/external_modules.h"
#include "tenon/graph/verifier.h"
#include "tenon/script/parser.h"
#include "tenon/script/printer.h"
#include "tenon/tir/analysis/verifier.h"

namespace tenon {

void verify_module(const IRModule& module, tir::VerifierMemory* memory) {
  (void)graph::external_modules(module);  // throws where they are not well formed
  Diagnostics diagnostics;
  graph::verify(module, diagnostics);
  tir::verify(module, diagnostics, memory);
  diagnostics.throw_if_any();
}

void check_text(const IRModule& module) {
  script::ConstantStore constants;
  script::PrintOptions options;
  options.constants = &constants;
  const std::string text = script::print(module, options);
  IRModule parsed;
  try {
    parsed = script::parse_module(text, {.constants = &constants, .module_name = {}});
  } catch (const CompileError& error) {
    throw InternalError(fmt::format("the printed module does not parse:\n{}", error.what()));
  }
  if (const auto difference = structural_difference(module, parsed))
    throw InternalError(fmt::format("the printed module parses to another one: {}: {}",
                                    difference->where, difference->message));
}

}  // namespace tenon
