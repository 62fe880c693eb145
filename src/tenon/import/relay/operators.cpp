// SPDX-License-Identifier: Apache-2.0
#include "tenon/import/relay/operators.h"

namespace tenon::relay {

static const OperatorTable<OperatorRow>& table() {
  static const OperatorTable<OperatorRow> kTable = {elementwise_rows, matrix_rows, window_rows,
                                                    norm_rows,        shape_rows,  index_rows,
                                                    reduction_rows,   create_rows};
  return kTable;
}

const std::vector<OperatorRow>& all_operators() { return table().rows(); }

const OperatorRow* find_operator(std::string_view name) {
  if (name.starts_with("relay.op.")) name.remove_prefix(9);
  return table().find(name);
}

}  // namespace tenon::relay
