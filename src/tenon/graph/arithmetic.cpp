#include "tenon/graph/arithmetic.h"

namespace tenon::graph {

using Shape = std::vector<double>;

static std::optional<Shape> shape_of(const Type& type, SymbolicDims dims) {
  const auto* tensor = type.as<TensorType>();
  if (!tensor || !tensor->shape) return std::nullopt;
  Shape shape;
  for (const Expr& dim : *tensor->shape) {
    const auto* size = dim.as<IntImm>();
    if (!size && dims == SymbolicDims::kRefuse) return std::nullopt;
    shape.push_back(size ? static_cast<double>(size->value) : 1);
  }
  return shape;
}

static double product(const Shape& shape) {
  double product = 1;
  for (const double dim : shape) product *= dim;
  return product;
}

std::optional<double> macs_of(const Call& call, const Type& result, SymbolicDims dims) {
  const auto shape_of_arg = [&](size_t i) {
    return call.args.size() <= i ? std::nullopt : shape_of(type_of(call.args[i]), dims);
  };
  if (call.is("matmul")) {
    const auto out = shape_of(result, dims), first = shape_of_arg(0);
    if (!out || !first || first->empty()) return std::nullopt;
    return product(*out) * first->back();
  }
  if (call.is("nn.conv1d") || call.is("nn.conv2d") || call.is("nn.conv3d")) {
    const auto out = shape_of(result, dims);  // weights: (out channels, in channels / groups, ...)
    const auto weights = shape_of_arg(1);
    if (!out || !weights || weights->empty() || weights->front() == 0) return std::nullopt;
    return product(*out) * product(*weights) / weights->front();
  }
  if (call.is("nn.conv1d_transpose") || call.is("nn.conv2d_transpose") ||
      call.is("nn.conv3d_transpose")) {
    const auto in = shape_of_arg(0), weights = shape_of_arg(1);
    if (!in || !weights || weights->empty() || weights->front() == 0) return std::nullopt;
    return product(*in) * product(*weights) / weights->front();
  }
  return 0;
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
  return product(*shape) * static_cast<double>(tensor->dtype.bytes());
}

}  // namespace tenon::graph
