// SPDX-License-Identifier: Apache-2.0
// Finds an iteration in which an access lies outside: tries every iteration where there are few,
// else the corners of the loops and of the conditions.
#pragma once

#include <string>

#include "tenon/arith/analyzer.h"
#include "tenon/tir/analysis/access_bounds.h"

namespace tenon::tir {

/// A loop that runs around an access, from the outermost on.
struct Running {
  Ref<Var> var;
  Expr min, extent;
};

class Search {
 public:
  enum class Answer : uint8_t { kInside, kOutside, kOpen };

  /// \param check   its expressions in terms of `loops`
  /// \param written the index as the program has it, whose variables the iteration names; `values`
  ///                are those of its axes
  /// \param guards  what must hold for the access to happen
  /// \param symbols dimensions, at least 1
  Answer decide(const AccessCheck& check, const Expr& written, const std::vector<Running>& loops,
                const std::vector<Expr>& guards, const std::vector<Ref<Var>>& symbols,
                const Substitution& values);

  // ---- after kOutside
  const std::string& value() const { return value_; }
  const std::string& extent() const { return extent_; }
  const std::string& iteration() const { return iteration_; }

 private:
  struct Question;
  Answer every_iteration(const Question& question);
  bool at_corners(const Question& question, const std::vector<Ref<Var>>& symbols);
  void found(const Question& question, const Substitution& at, arith::Analyzer& analyzer);

  std::string value_, extent_, iteration_;
};

}  // namespace tenon::tir
