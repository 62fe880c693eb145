// Which ONNX operators are imported, as data for tables: derived from the converters' own rows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::onnx {

struct OperatorCoverage {
  std::string domain;  // "ai.onnx", "ai.onnx.ml", ...
  std::string name;
  int64_t first_opset, last_opset;  // of the domain, inclusive
  std::string types;                // element types of the main operand: "floats"
  std::string
      forms;  // what is not imported, which operands must be known at compile time; or empty
};

/// Every operator, by domain and name.
std::vector<OperatorCoverage> operator_coverage();

}  // namespace tenon::onnx
