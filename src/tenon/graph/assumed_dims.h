// SPDX-License-Identifier: Apache-2.0
// What type rules take for granted of symbolic dimensions.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tenon/graph/expr.h"

namespace tenon::graph {

/// While it lives, collects what type rules of its thread take for granted without a proof.
class AssumedDims {
 public:
  AssumedDims();
  ~AssumedDims();
  AssumedDims(const AssumedDims&) = delete;
  AssumedDims& operator=(const AssumedDims&) = delete;

  std::vector<std::pair<Expr, Expr>> pairs;  // dimensions that are taken for equal

  /// A condition over dimensions, and what is wrong where it does not hold.
  struct Condition {
    Expr holds;
    std::string otherwise;
  };
  std::vector<Condition> conditions;

 private:
  AssumedDims* outer_;
};

/// Whether two dimensions may be equal: false where they are proved different. A pair of which
/// neither is proved is noted in the innermost AssumedDims.
bool may_agree(const Expr& a, const Expr& b);

/// Notes a condition, which is neither true nor false here, in the innermost AssumedDims.
void assume(Expr condition, std::string otherwise);

}  // namespace tenon::graph
