// SPDX-License-Identifier: Apache-2.0
// Reads TVMScript: the text of a module, of both levels, into an IRModule. docs/tvmscript.md tells
// the grammar.
#pragma once

#include <memory>
#include <string>

#include "tenon/ir/module.h"
#include "tenon/script/constants.h"
#include "tenon/script/lexer.h"
#include "tenon/support/diagnostics.h"

namespace tenon::script {

class HostNames;

struct ParseOptions {
  /// Where constants that the text refers to are found; may be null.
  const ConstantStore* constants = nullptr;
  /// The class to read where a file has several modules; empty: the only one.
  std::string module_name = {};
  /// Where not null: the program around the text (host.h), which gives names that the text does not
  /// define. Functions of other modules that the text names become functions of the module, after
  /// its own.
  const HostNames* names = nullptr;
  /// The lines that are read; the rest of the file is what diagnostics show.
  LineRange lines = {};
  /// The lines are a class that is the module, under no decorator.
  bool bare_class = false;
};

/// The module in `file`: the class under `@I.ir_module`, or the decorated functions of a file
/// without one. Other Python around it is skipped. Every node's origin is its place in the file.
/// \throws CompileError with every error found (kSyntax, kBadLiteral, kUndefined, kBadArgument,
/// kTooDeep, ..., and those of node constructors), at most one of each function.
IRModule parse_module(const std::shared_ptr<const SourceFile>& file,
                      const ParseOptions& options = {});

/// The same of a text that has no file.
IRModule parse_module(const std::string& text, const ParseOptions& options = {});

}  // namespace tenon::script
