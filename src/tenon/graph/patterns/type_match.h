// SPDX-License-Identifier: Apache-2.0
// Compares types, dimensions and attributes in patterns with those of values. Internal to
// graph/patterns/.
#pragma once

#include <unordered_map>
#include <utility>
#include <vector>

#include "tenon/graph/expr.h"

namespace tenon::graph {

/// What bare dimensions of a pattern stand for. What is noted can be taken back to a mark.
class DimBindings {
 public:
  struct Mark {
    size_t bound = 0, pending = 0;
  };
  Mark mark() const { return {log_.size(), pending_.size()}; }
  void undo(Mark mark);

  /// False where they differ. A bare variable is bound, an expression over variables compared once
  /// they are known (`settled`).
  bool match(const Expr& pattern, const Expr& dim);
  bool match(const std::vector<Expr>& pattern, const std::vector<Expr>& dims);
  /// What is known is equal: false where a pair of pending ones differs, or cannot be told.
  bool settled() const;
  std::unordered_map<const Node*, NodePtr> values() const;

 private:
  std::unordered_map<const Node*, Expr> bound_;
  std::vector<const Node*> log_;
  std::vector<std::pair<Expr, Expr>> pending_;
};

/// `given` is a `declared`: what `declared` leaves open may be anything.
bool allows(const Type& declared, const Type& given, DimBindings& dims);

/// Equal, where padding of 2 numbers is that of 4, and the like.
bool same_attr(const AttrValue& a, const AttrValue& b);

/// Dimensions other than 1; nothing where the shape is not known.
std::optional<std::vector<Expr>> proper_dims(const Type& type);

}  // namespace tenon::graph
