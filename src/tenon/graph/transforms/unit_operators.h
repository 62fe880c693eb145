// SPDX-License-Identifier: Apache-2.0
// The operators of a function that a back end is given, for remarks about each of them.
#pragma once

#include <string>
#include <vector>

#include "tenon/graph/expr.h"

namespace tenon::graph {

/// An operator of a composite or of a region, at one place where that is called.
struct UnitOperator {
  std::string subject = {};  // the model's node, or the variable that the call is bound to
  Origin origin = {};
  double flop = 0;             // a symbolic dimension counts as 1
  std::string composite = {};  // that it is of: "toy.dense_bias"; empty: of none
};

/// Of function `name` and the composites that it calls: each operator at each place of the module
/// that calls `name`. Equal composites are one function, whose body has the origins of the first
/// match; those of the others are what the call is merged from. Kernels (R.call_tir) are left out.
std::vector<UnitOperator> operators_of_unit(const IRModule& module, const std::string& name);

/// Where `name` is called from.
struct CallSite {
  std::string variable;  // that the result is bound to
  Origin origin;
};
std::vector<CallSite> sites_of(const IRModule& module, const std::string& name);

/// Records that `provider` computes the operators of a unit: remarks of RunCodegen, verdict
/// "placed", reason: the composite, or `provider` and the unit's name; number `flop`.
void record_taken(const std::vector<UnitOperator>& operators, const std::string& provider,
                  const std::string& unit);

/// Records that a call of a unit works in so many bytes of scratch.
void record_scratch(const std::string& unit, const std::string& provider, int64_t bytes,
                    const Origin& origin);

}  // namespace tenon::graph
