// SPDX-License-Identifier: Apache-2.0
// Spells names, types and comments in generated C.
#pragma once

#include <set>
#include <string>

#include "tenon/support/dtype.h"

namespace tenon::c_backend {

/// `text` as a C identifier (also of C++): what may not stand in one becomes `_`.
std::string c_identifier(const std::string& text);

/// Names of one scope, each used once.
class Names {
 public:
  /// `text` as an identifier, with a number where it is taken already.
  std::string take(const std::string& text);
  void reserve(const std::string& name) { taken_.insert(name); }
  bool has(const std::string& name) const { return taken_.count(name) != 0; }

 private:
  std::set<std::string> taken_;
};

/// In capitals, as macros are.
std::string upper(std::string text);

/// What may stand inside a comment.
std::string comment_text(std::string text);

/// A string literal, with quotes.
std::string c_string(const std::string& text);

/// The C type of an element in memory; bools are bytes, floats that C has no type for their bits.
std::string c_type(DType dtype);

}  // namespace tenon::c_backend
