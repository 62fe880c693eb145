// SPDX-License-Identifier: Apache-2.0
// The words of the two languages, `T.grid` and `R.Tensor`, with their parameters: what editors and
// type checkers are told of scripts.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tenon::script {

struct Word {
  enum class Kind : uint8_t { kFunction, kType, kDecorator };

  std::string name;        // "T.axis.spatial"
  std::string parameters;  // "dom, binding=None", in Python's syntax
  std::string summary;     // of one line
  Kind kind = Kind::kFunction;
};

/// Every word, sorted: statements and types, TensorIR's dtypes and intrinsics, Relax's operators,
/// and the other spellings of some.
std::vector<Word> all_words();

/// For what has two spellings, the one that is read by the other: "T.sblock" is "T.block".
const std::unordered_map<std::string, std::string>& other_spellings();

}  // namespace tenon::script
