// SPDX-License-Identifier: Apache-2.0
// Dimensions that type rules take for equal.
#pragma once

#include <utility>
#include <vector>

#include "tenon/graph/expr.h"

namespace tenon::graph {

/// While it lives, collects the pairs of dimensions that type rules of its thread take for equal
/// without a proof.
class AssumedDims {
 public:
  AssumedDims();
  ~AssumedDims();
  AssumedDims(const AssumedDims&) = delete;
  AssumedDims& operator=(const AssumedDims&) = delete;

  std::vector<std::pair<Expr, Expr>> pairs;

 private:
  AssumedDims* outer_;
};

/// Whether two dimensions may be equal: false where they are proved different. A pair of which
/// neither is proved is noted in the innermost AssumedDims.
bool may_agree(const Expr& a, const Expr& b);

}  // namespace tenon::graph
