// SPDX-License-Identifier: Apache-2.0
// The ONNX operators that are imported: a row for each, in a table for each family.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tenon/import/onnx/context.h"
#include "tenon/import/operator_table.h"

namespace tenon::onnx {

/// The values of a node's outputs, in order; trailing ones that nothing asks for may be left out.
using Results = std::vector<Value>;
using Convert = std::function<Results(Context&)>;
/// The same of an operator whose operands and results may be sequences and optionals.
using ConvertItems = std::function<std::vector<ItemRef>(Context&)>;

struct OperatorRow {
  std::string name;
  int first_opset;                // the oldest version of its operator set whose form is read
  int least_inputs, most_inputs;  // -1: any number
  Convert convert;
  std::string types = "numbers";  // of the main operand
  std::string forms = {};  // what is not imported, and which operands must be known at compile time
  std::string domain = {};
  ConvertItems convert_items = {};  // in place of `convert`

  std::pair<std::string_view, std::string_view> key() const { return {domain, name}; }
};

/// The newest version of ai.onnx that is imported, and of ai.onnx.ml.
inline constexpr int64_t kNewestOpset = 27, kNewestMlOpset = 5;

/// Every row, by name.
const std::vector<OperatorRow>& all_operators();
/// Null where there is none.
const OperatorRow* find_operator(std::string_view domain, std::string_view name);

/// The results of operator `name` of ai.onnx, version `opset`, on `inputs` (null: left out) in the
/// place of the node's operands, with the node's attributes.
Results convert_as(Context& context, std::string_view name, int64_t opset,
                   const std::vector<Value>& inputs);

/// The same with the node's own operands, `most` of them at most.
Results read_as(Context& context, std::string_view name, int64_t opset, size_t most = SIZE_MAX);

/// The row of an operator of com.microsoft.
OperatorRow contrib(std::string name, int least_inputs, int most_inputs, Convert convert,
                    std::string types = "int8, uint8", std::string forms = "");

/// The families, one for each file ops_*.cpp.
std::vector<OperatorRow> elementwise_rows(), reduction_rows(), shape_rows(), index_rows(),
    matrix_rows(), window_rows(), norm_rows(), activation_rows(), recurrent_rows(), quantize_rows(),
    qlinear_rows(), create_rows(), image_rows(), loss_rows(), tree_rows(), ml_rows(),
    attention_rows(), transformer_rows(), sampling_rows(), signal_rows(), random_rows(),
    contrib_rows(), cast_rows(), text_rows(), map_rows(), select_rows(), loop_rows(),
    sequence_rows();

/// Operand 0 in parts of these sizes along `axis`, which are together as long as that.
Results split_into(Context& c, int64_t axis, const Dims& sizes);

}  // namespace tenon::onnx
