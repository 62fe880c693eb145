// SPDX-License-Identifier: Apache-2.0
#include "tenon/import/onnx/operators.h"

#include <algorithm>

namespace tenon::onnx {

static const OperatorTable<OperatorRow>& table() {
  static const OperatorTable<OperatorRow> kTable = {
      elementwise_rows, reduction_rows, shape_rows,       index_rows,     matrix_rows,
      window_rows,      norm_rows,      activation_rows,  recurrent_rows, quantize_rows,
      create_rows,      image_rows,     loss_rows,        qlinear_rows,   tree_rows,
      ml_rows,          attention_rows, transformer_rows, sampling_rows,  signal_rows,
      random_rows,      cast_rows,      text_rows,        map_rows,       select_rows,
      loop_rows,        sequence_rows,  contrib_rows};
  return kTable;
}

const std::vector<OperatorRow>& all_operators() { return table().rows(); }

const OperatorRow* find_operator(std::string_view domain, std::string_view name) {
  return table().find(std::pair(domain, name));
}

static Results convert_operands(Context& context, std::string_view name, int64_t opset,
                                std::vector<ItemRef> items) {
  const OperatorRow* row = find_operator("", name);
  check(row != nullptr, "an operator that is no row of ai.onnx");
  Context inner = context.with_operands(std::move(items), opset);
  Results results = row->convert(inner);
  context.joins(inner);
  return results;
}

Results convert_as(Context& context, std::string_view name, int64_t opset,
                   const std::vector<Value>& inputs) {
  std::vector<ItemRef> items;
  for (const Value& input : inputs) {
    items.push_back(input ? std::make_shared<Item>() : nullptr);
    if (input) items.back()->value = input;
  }
  return convert_operands(context, name, opset, std::move(items));
}

Results read_as(Context& context, std::string_view name, int64_t opset, size_t most) {
  std::vector<ItemRef> items;
  for (size_t i = 0; i < std::min(most, context.input_count()); ++i)
    items.push_back(context.has(i) ? context.ref(i) : nullptr);
  return convert_operands(context, name, opset, std::move(items));
}

OperatorRow contrib(std::string name, int least_inputs, int most_inputs, Convert convert,
                    std::string types, std::string forms) {
  return {std::move(name),    1,
          least_inputs,       most_inputs,
          std::move(convert), std::move(types),
          std::move(forms),   "com.microsoft"};
}

}  // namespace tenon::onnx
