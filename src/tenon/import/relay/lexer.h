// SPDX-License-Identifier: Apache-2.0
// Splits Relay text into tokens. Comments are kept beside the token that they follow: TVM prints
// types and spans in them.
#pragma once

#include "tenon/script/lexer.h"

namespace tenon::relay {

using script::Place;

enum class RelayToken : uint8_t {
  kLocal,   // %x, %12, %conv1.weight: without the %, with a projection that follows (`x.0`)
  kGlobal,  // @main
  kName,    // an operator, a type, a keyword: dots and :: included
  kNumber,  // with its suffix: 1f, 2i64
  kString,  // with its quotes
  kOperator,
  kScript,  // a PrimFunc in TVMScript, from its decorator on
  kEnd,
};

struct Token {
  RelayToken kind;
  std::string_view text;
  Place place;
  std::string_view comment = {};  // what follows, without its marks: the first one of the printer's

  bool is(std::string_view op) const { return kind == RelayToken::kOperator && text == op; }
  bool is_name(std::string_view name) const { return kind == RelayToken::kName && text == name; }
};

struct TokenText {
  std::vector<Token> tokens;  // ends with kEnd; they refer to the text
  std::string_view metadata;  // what follows `#[metadata]`; empty where there is none
  Place metadata_place;
};

/// \throws CompileError kSyntax at what is no Relay, kLimitExceeded where the text before the
/// metadata is longer than 64 MiB.
TokenText tokenize(const std::shared_ptr<const SourceFile>& file);

}  // namespace tenon::relay
