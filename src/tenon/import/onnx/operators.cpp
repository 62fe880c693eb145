// SPDX-License-Identifier: Apache-2.0
#include "tenon/import/onnx/operators.h"

namespace tenon::onnx {

static const OperatorTable<OperatorRow>& table() {
  static const OperatorTable<OperatorRow> kTable = {
      elementwise_rows, reduction_rows, shape_rows,      index_rows,     matrix_rows,
      window_rows,      norm_rows,      activation_rows, recurrent_rows, quantize_rows,
      create_rows,      image_rows,     loss_rows};
  return kTable;
}

const std::vector<OperatorRow>& all_operators() { return table().rows(); }

const OperatorRow* find_operator(std::string_view domain, std::string_view name) {
  return table().find(std::pair(domain, name));
}

}  // namespace tenon::onnx
