// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/assumed_dims.h"

#include "tenon/graph/shape.h"

namespace tenon::graph {

namespace {

thread_local AssumedDims* innermost = nullptr;

}  // namespace

AssumedDims::AssumedDims() : outer_(innermost) { innermost = this; }
AssumedDims::~AssumedDims() { innermost = outer_; }

bool may_agree(const Expr& a, const Expr& b) {
  const DimsAgree agree = dims_agree(a, b);
  if (agree == DimsAgree::kUnknown && innermost) innermost->pairs.emplace_back(a, b);
  return agree != DimsAgree::kNo;
}

void assume(Expr condition, std::string otherwise) {
  if (innermost) innermost->conditions.push_back({std::move(condition), std::move(otherwise)});
}

}  // namespace tenon::graph
