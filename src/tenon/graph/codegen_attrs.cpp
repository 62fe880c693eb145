// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/codegen_attrs.h"

namespace tenon::graph {

std::string backend_of(const FunctionNode& function) {
  if (const auto composite = function.attrs.get<std::string>("Composite"))
    return composite->substr(0, composite->find('.'));
  if (const auto compiler = function.attrs.get<std::string>("Compiler")) return *compiler;
  return function.attrs.get<std::string>("Codegen").value_or("");
}

std::string composite_name(const FunctionNode& function) {
  const auto composite = function.attrs.get<std::string>("Composite");
  const size_t dot = composite ? composite->find('.') : std::string::npos;
  return dot == std::string::npos ? "" : composite->substr(dot + 1);
}

}  // namespace tenon::graph
