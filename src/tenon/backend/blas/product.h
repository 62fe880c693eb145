// A matrix product of a graph, in the terms of cblas_sgemm.
#pragma once

#include <string>
#include <vector>

#include "tenon/backend/match_graph.h"

namespace tenon::backend::blas {

/// y = alpha * op(a) op(b) + addend, for each matrix of a batch. Strides in elements.
struct Product {
  std::string dtype;        // "float32", "float64"
  int a = 0, b = 0, y = 0;  // values
  int addend = -1;          // likewise; -1: none
  int64_t m = 1, n = 1, k = 1;
  bool transposes_a = false, transposes_b = false;
  int64_t lda = 1, ldb = 1;
  double alpha = 1;
  std::vector<int64_t> batch;                              // extents
  std::vector<int64_t> stride_a, stride_b, stride_addend;  // of each of these
  int64_t addend_row = 0, addend_column = 0;

  double flop() const;
};

/// \throws Refusal where the graph is something else, or the library has no such product.
Product read_product(const MatchGraph& graph);

/// C99 source: what stands once in front, and the function.
std::string c_prelude();
std::string c_function(const std::string& symbol, const MatchGraph& graph, const Product& product);

}  // namespace tenon::backend::blas
