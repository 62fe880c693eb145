// SPDX-License-Identifier: Apache-2.0
// Reads Relay text, as TVM 0.9 to 0.18 print it, into graph functions. docs/relay.md tells what is
// read.
#pragma once

#include <memory>
#include <string>

#include "tenon/import/relay/params.h"
#include "tenon/ir/module.h"

namespace tenon::relay {

struct ReadOptions {
  /// Values of parameters of the entry by name: they become constants. May be null.
  const Params* params = nullptr;
};

/// The functions of `file`. A `fn` within another becomes a private function of the module, and a
/// text that is one expression becomes `main`. Every node's origin is its place in the text, named
/// by the `span=` behind it where there is one.
/// \throws CompileError (kUnsupportedOperator) that lists all operators, attributes and forms that
/// are not read, each with its place; kSyntax, kUndefined, kBadArgument, kTypeMismatch, ... and
/// what operators' type rules find; kBadInput where `params` do not fit the entry's.
IRModule read_relay(const std::shared_ptr<const SourceFile>& file, const ReadOptions& options = {});

/// The same of a text that has no file.
IRModule read_relay(const std::string& text, const ReadOptions& options = {});

}  // namespace tenon::relay
