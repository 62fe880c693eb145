// SPDX-License-Identifier: Apache-2.0
#include "tenon/import/relay/operators.h"

#include <map>

namespace tenon::relay {

const std::vector<OperatorRow>& all_operators() {
  static const std::vector<OperatorRow> kRows = [] {
    std::map<std::string, OperatorRow> sorted;
    for (const auto family : {elementwise_rows, matrix_rows, window_rows, norm_rows, shape_rows,
                              index_rows, reduction_rows, create_rows}) {
      for (OperatorRow& row : family()) {
        std::string key = row.name;
        check(sorted.emplace(std::move(key), std::move(row)).second, "an operator has two rows");
      }
    }
    std::vector<OperatorRow> rows;
    for (auto& [key, row] : sorted) rows.push_back(std::move(row));
    return rows;
  }();
  return kRows;
}

const OperatorRow* find_operator(std::string_view name) {
  static const auto kIndex = [] {
    std::map<std::string_view, const OperatorRow*> index;
    for (const OperatorRow& row : all_operators()) index.emplace(row.name, &row);
    return index;
  }();
  if (name.starts_with("relay.op.")) name.remove_prefix(9);
  const auto it = kIndex.find(name);
  return it == kIndex.end() ? nullptr : it->second;
}

}  // namespace tenon::relay
