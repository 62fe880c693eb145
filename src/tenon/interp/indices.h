// SPDX-License-Identifier: Apache-2.0
// Integer expressions as affine sums of slots with bounds: the address of an access, and whether it
// can leave its buffer.
#pragma once

#include <functional>
#include <optional>

#include "tenon/interp/emitter.h"

namespace tenon::interp {

/// constant + sum of coefficient * slot.
struct Affine {
  std::vector<std::pair<int32_t, int64_t>> terms;  // by slot
  int64_t constant = 0;
};

class Indices {
 public:
  /// \param slot_of  makes code for an expression that is no sum
  Indices(Emitter& emitter, Code& code, std::function<int32_t(const Expr&)> slot_of)
      : emitter_(emitter), code_(code), slot_of_(std::move(slot_of)) {}

  /// `var` has this value wherever it is used.
  void define(const Node* var, Affine value) { defined_[var] = std::move(value); }
  void forget(const Node* var) { defined_.erase(var); }
  /// Null where it was not defined so.
  const Affine* find(const Node* var) const;

  /// A sum, difference or product with a constant that cannot wrap; nothing for other expressions.
  std::optional<Affine> sum(const Expr& expr);
  /// Every integer expression.
  Affine affine(const Expr& expr);
  Bounds bounds(const Affine& value) const;
  /// Whatever is assumed here: what holds wherever its value is known.
  Bounds bounds_everywhere(const Affine& value) const;
  bool is_settled(const Affine& value) const;
  /// Its value in a slot.
  int32_t slot(const Affine& value);

  /// Whether a condition holds always, or never, as far as the bounds tell.
  std::optional<bool> decide(const Expr& condition);
  /// `condition` holds for what is resolved until `restore(mark)`.
  void assume(const Expr& condition);
  size_t mark() const { return assumed_.size(); }
  void restore(size_t mark) { assumed_.resize(mark); }

  /// A view whose shape and strides (in elements) are numbers.
  struct Geometry {
    std::vector<int64_t> shape, strides;
  };
  /// The number of an access in code's table, after checks of indices that may be outside. Nothing
  /// where it is no run of equally distant elements, or one of which some may be outside.
  std::optional<int32_t> access(int32_t view, const Geometry& geometry, DType element,
                                const std::vector<Expr>& indices, int lanes);

 private:
  Affine combined(const Affine& a, const Affine& b, int64_t factor) const;
  std::optional<Affine> find_sum(const Expr& expr);
  // a - b of two operands of a comparison.
  std::optional<Affine> difference(const Expr& a, const Expr& b);
  int32_t constant(int64_t value);

  struct Assumption {
    std::vector<std::pair<int32_t, int64_t>> terms;
    Bounds bounds;
  };
  Emitter& emitter_;
  Code& code_;
  std::function<int32_t(const Expr&)> slot_of_;
  std::unordered_map<const Node*, Affine> defined_;
  std::unordered_map<const Node*, bool> no_sums_;  // so that none is tried again and again
  std::vector<Assumption> assumed_;
};

}  // namespace tenon::interp
