// SPDX-License-Identifier: Apache-2.0
// Sorting in a kernel, and the operators that stand on it in files of their own.
#pragma once

#include "tenon/graph/ops/statements.h"

namespace tenon::graph {

/// Whether `a` stands before `b` where least comes first: NaN is greater than every number.
Expr is_less(const Expr& a, const Expr& b);

/// Sorts positions along an axis by merging runs of 1, 2, 4, ... elements: one block for each row.
/// Equal elements keep their order.
class MergeSort {
 public:
  /// Whether the element at the indices `a` belongs behind that at `b`, which stands behind it now;
  /// statements that it needs go before.
  using Behind = std::function<Expr(Statements&, const Indices& a, const Indices& b)>;

  MergeSort(KernelOf& kernel, const std::vector<Expr>& shape, size_t axis, Behind behind);

  /// The position of the element that stands at given indices in order.
  std::function<Expr(const Indices&)> emit();

 private:
  Expr passes() const;
  Indices at(const Expr& position) const;
  Expr run(const Expr& which, const Expr& position) const;
  void store_run(Statements& body, const Expr& which, const Expr& position,
                 const Expr& value) const;
  Expr next(int64_t side) const;
  void store_next(Statements& body, int64_t side, const Expr& value) const;
  void step(Statements& body, const Expr& p, const Expr& u) const;

  KernelOf& kernel_;
  size_t axis_;
  Behind behind_;
  Expr extent_;
  Operand runs_, next_;
  std::vector<Expr> rows_;
  Indices row_;
};

OpDef nonzero(), unique_positions();

}  // namespace tenon::graph
