// SPDX-License-Identifier: Apache-2.0
// A matrix product of a graph as arguments of cblas_sgemm and cblas_dgemm.
#pragma once

#include <string>
#include <vector>

#include "tenon/backend/blas/extent.h"
#include "tenon/backend/match_graph.h"

namespace tenon::backend::blas {

/// y = alpha * op(a) op(b) + addend, for each matrix of a batch. Strides in elements.
struct Product {
  std::string dtype;        // "float32", "float64"
  int a = 0, b = 0, y = 0;  // values
  int addend = -1;          // likewise; -1: none
  Extent m, n, k;
  bool transposes_a = false, transposes_b = false;
  Extent lda, ldb;
  double alpha = 1;
  Extents batch;
  Extents stride_a, stride_b, stride_addend;  // of each of these
  Extent addend_row = 0, addend_column = 0;

  /// Of floating point; below 0 where sizes are known at run time only.
  double flop() const;
};

/// \throws Refusal where the graph is something else, or the library has no such product.
Product read_product(const MatchGraph& graph);

/// What the function returns where a dimension that is known at run time only does not fit the
/// library's integers.
inline constexpr int kTooLarge = 1005;

/// C99 source: what stands once in front, and the function. After its outputs the function takes
/// the symbols of the match, each `int64_t`.
std::string c_prelude();
std::string c_function(const std::string& symbol, const MatchGraph& graph, const Product& product);

}  // namespace tenon::backend::blas
