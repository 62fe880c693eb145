// SPDX-License-Identifier: Apache-2.0
// The Relay operators that are read: a row for each, in a table for each family.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tenon/import/operator_table.h"
#include "tenon/import/relay/op_call.h"

namespace tenon::relay {

/// The value of a call; a tuple where the operator gives one.
using Convert = std::function<Value(OpCall&)>;

struct OperatorRow {
  std::string name;
  int least_args, most_args;  // -1: any number
  Convert convert;
  std::string becomes = {};  // what it is in a graph function; empty: the operator of its name
  std::string forms = {};    // what is not read, and which operands must be constants

  const std::string& key() const { return name; }
};

/// Every row, by name.
const std::vector<OperatorRow>& all_operators();
/// Null where there is none.
const OperatorRow* find_operator(std::string_view name);

/// The families, one for each file ops_*.cpp.
std::vector<OperatorRow> elementwise_rows(), matrix_rows(), window_rows(), norm_rows(),
    shape_rows(), index_rows(), reduction_rows(), create_rows();

}  // namespace tenon::relay
