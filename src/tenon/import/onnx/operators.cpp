// SPDX-License-Identifier: Apache-2.0
#include "tenon/import/onnx/operators.h"

#include <map>

namespace tenon::onnx {

const std::vector<OperatorRow>& all_operators() {
  static const std::vector<OperatorRow> kRows = [] {
    std::map<std::pair<std::string, std::string>, OperatorRow> sorted;
    for (const auto family : {elementwise_rows, reduction_rows, shape_rows, index_rows, matrix_rows,
                              window_rows, norm_rows, activation_rows, recurrent_rows,
                              quantize_rows, create_rows, image_rows, loss_rows}) {
      for (OperatorRow& row : family()) {
        std::pair<std::string, std::string> key(row.domain, row.name);
        check(sorted.emplace(std::move(key), std::move(row)).second, "an operator has two rows");
      }
    }
    std::vector<OperatorRow> rows;
    for (auto& [key, row] : sorted) rows.push_back(std::move(row));
    return rows;
  }();
  return kRows;
}

const OperatorRow* find_operator(const std::string& domain, const std::string& name) {
  static const auto kIndex = [] {
    std::map<std::pair<std::string, std::string>, const OperatorRow*> index;
    for (const OperatorRow& row : all_operators())
      index.emplace(std::pair(row.domain, row.name), &row);
    return index;
  }();
  const auto it = kIndex.find({domain, name});
  return it == kIndex.end() ? nullptr : it->second;
}

}  // namespace tenon::onnx
