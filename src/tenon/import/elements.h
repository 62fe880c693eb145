// SPDX-License-Identifier: Apache-2.0
// Elements of small tensors that are known during import: shapes that the network computes, as
// constants or as expressions of its symbolic dimensions.
#pragma once

#include <optional>
#include <vector>

#include "tenon/graph/expr.h"

namespace tenon::importers {

/// A tensor with known elements, row-major. Integers of every width are int64 expressions, bools
/// bool expressions, floats constants of the dtype.
struct Elements {
  DType dtype;
  std::vector<int64_t> shape;
  std::vector<Expr> values;

  int64_t ndim() const { return static_cast<int64_t>(shape.size()); }
  /// The integers, where all are constant.
  std::optional<std::vector<int64_t>> constants() const { return as_ints(values); }
};

/// What is kept as elements; larger tensors are data.
inline constexpr int64_t kMostElements = 1024;

/// Whether Elements holds tensors of `dtype`.
bool holds(DType dtype);
/// The elements of a constant, where it is small and of a type that Elements holds.
std::optional<Elements> elements_of(const TensorData& data);
/// As a constant, where all elements are constants.
Ref<TensorData> tensor_of(const Elements& elements);

}  // namespace tenon::importers
