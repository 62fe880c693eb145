// SPDX-License-Identifier: Apache-2.0
// Reads the tree of a Relay text. docs/relay.md tells what is read.
#pragma once

#include <memory>

#include "tenon/import/relay/lexer.h"
#include "tenon/import/relay/tree.h"
#include "tenon/support/diagnostics.h"

namespace tenon::relay {

/// \throws CompileError kSyntax, kBadLiteral, kTooDeep, kUnsupported (match, references).
ModuleTree parse(const std::shared_ptr<const SourceFile>& file, const TokenText& text);

/// The type in a comment `ty=...`; nothing where there is none, or it cannot be read.
std::optional<TypeTree> type_in(std::string_view comment);
/// The origin in a comment `span=...`: "aten::linear_0:0:0" without its line and column.
std::string span_in(std::string_view comment);

}  // namespace tenon::relay
