// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/arithmetic.h"

#include "tenon/graph/op.h"

namespace tenon::graph {

static KnownShape shape_of(const Type& type, SymbolicDims dims) {
  const auto* tensor = type.as<TensorType>();
  if (!tensor || !tensor->shape) return std::nullopt;
  std::vector<double> shape;
  for (const Expr& dim : *tensor->shape) {
    const auto* size = dim.as<IntImm>();
    if (!size && dims == SymbolicDims::kRefuse) return std::nullopt;
    shape.push_back(size ? static_cast<double>(size->value) : 1);
  }
  return shape;
}

std::optional<double> macs_of(const Call& call, const Type& result, SymbolicDims dims) {
  if (!call.op || !call.op->macs) return 0;
  std::vector<KnownShape> args;
  for (size_t i = 0; i < call.op->inputs.size(); ++i) {
    const bool given = i < call.args.size() && call.args[i];
    args.push_back(given ? shape_of(type_of(call.args[i]), dims) : std::nullopt);
  }
  return call.op->macs(args, shape_of(result, dims));
}

double bytes_of(const Type& type, SymbolicDims dims) {
  if (const auto* tuple = type.as<TupleType>()) {
    double bytes = 0;
    for (const Type& item : tuple->types) bytes += bytes_of(item, dims);
    return bytes;
  }
  const auto shape = shape_of(type, dims);
  const auto* tensor = type.as<TensorType>();
  if (!shape || tensor->dtype.is_void()) return 0;
  double elements = 1;
  for (const double dim : *shape) elements *= dim;
  return elements * static_cast<double>(tensor->dtype.bytes());
}

}  // namespace tenon::graph
