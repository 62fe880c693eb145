// SPDX-License-Identifier: Apache-2.0
// The identity of an operator. Rewrites, fusion and copies of a module hand it on with the origin.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "tenon/support/origin.h"

namespace tenon {

/// Which operator of a module an origin stands for. The importer numbers a network's nodes, whose
/// names may repeat; AnnotatePlacement numbers each operator, of which a node may become several.
struct OperatorId {
  std::string place;    // Origin::str
  uint32_t number = 0;  // among the operators of one place

  friend auto operator<=>(const OperatorId&, const OperatorId&) = default;
};

/// \param origin  not merged: one part of it.
OperatorId operator_id(const Origin& origin);
bool is_same_operator(const Origin& a, const Origin& b);

}  // namespace tenon
