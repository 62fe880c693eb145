// SPDX-License-Identifier: Apache-2.0
// Forms of foreign operators that are not read: a converter refuses one, the import goes on with the
// next operator, and one diagnostic lists all of them.
#pragma once

#include <fmt/core.h>

#include <functional>
#include <string>
#include <vector>

#include "tenon/support/diagnostics.h"

namespace tenon::importers {

/// A form of an operator that is not read. Caught by Refusals::attempt.
struct Unsupported {
  std::string form;  // "mode `cubic`"
};
template <typename... Args>
[[noreturn]] void unsupported(fmt::format_string<Args...> format, Args&&... args) {
  throw Unsupported{fmt::format(format, std::forward<Args>(args)...)};
}

inline constexpr const char* kNoOperator = "the operator";  // the form of one that no row is for

struct Refusal {
  Origin origin;
  std::string name, form;  // of the operator
};

class Refusals {
 public:
  void add(Origin origin, std::string name, std::string form) {
    all_.push_back({std::move(origin), std::move(name), std::move(form)});
  }
  /// Runs `convert`. False where it refuses a form, which is added then: an Unsupported, or an error
  /// of a graph operator that has no such form. Other errors without a place are given `origin`;
  /// where that is a place in a text, so are those with the place of a model's node.
  bool attempt(const Origin& origin, const std::string& name, const std::function<void()>& convert);

  bool empty() const { return all_.empty(); }
  const std::vector<Refusal>& all() const { return all_; }
  /// "2 nodes are not supported: `Foo` (the operator, 2 nodes)" for `noun` "node" and `verb`
  /// "supported".
  std::string str(const std::string& noun, const std::string& verb) const;

 private:
  std::vector<Refusal> all_;
};

/// What an operator with `least` to `most` (-1: any number) operands expects, where `given` is
/// another number: "2 to 4"; empty where it is not.
std::string expected_count(size_t given, int least, int most);

}  // namespace tenon::importers
