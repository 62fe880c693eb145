#include "tenon/import/onnx/coverage.h"

#include <algorithm>

#include "tenon/import/onnx/operators.h"

namespace tenon::onnx {

std::vector<OperatorCoverage> operator_coverage() {
  std::vector<OperatorCoverage> out;
  for (const OperatorRow& row : all_operators())
    out.push_back({row.domain.empty() ? "ai.onnx" : row.domain, row.name, row.first_opset,
                   row.domain.empty() ? kNewestOpset : row.first_opset, row.types, row.forms});
  // Control flow is the importer's own, and no row.
  out.push_back({"ai.onnx", "If", 1, kNewestOpset, "all", "branches that give equal types"});
  std::sort(out.begin(), out.end(), [](const OperatorCoverage& a, const OperatorCoverage& b) {
    return std::pair(a.domain, a.name) < std::pair(b.domain, b.name);
  });
  return out;
}

}  // namespace tenon::onnx
