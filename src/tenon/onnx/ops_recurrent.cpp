#include "tenon/onnx/operators.h"

namespace tenon::onnx {

std::vector<OperatorRow> recurrent_rows() { return {}; }

}  // namespace tenon::onnx
