// SPDX-License-Identifier: Apache-2.0
#include "tenon/import/converter_context.h"

#include <algorithm>
#include <set>

#include "tenon/arith/analyzer.h"
#include "tenon/script/constants.h"

namespace tenon::importers {

using graph::TensorType;

Ref<TensorType> shaped(const Value& value) {
  Ref<TensorType> type = graph::tensor_type(value);
  if (!type->shape || type->dtype.is_void())
    unsupported("a tensor whose shape is known only at run time");
  return type;
}

// ---- operands

void ConverterContext::used_as_number(size_t, std::string_view, const Dims&) {}

Dims ConverterContext::dims(size_t i, std::string_view what) {
  const DType type = dtype(i);
  if (!type.is_integer() && !type.is_bool())
    bad(kDTypeMismatch, "operand `{}` of `{}` has dtype {}; expected integers", what, name_,
        type.str());
  const Elements* known = elements(i);
  if (!known) known = run_time_elements(i);
  if (!known) unsupported("operand `{}` known only at run time", what);
  used_as_number(i, what, known->values);
  return known->values;
}

Ints ConverterContext::ints(size_t i, std::string_view what) {
  const auto values = as_ints(dims(i, what));
  if (!values)
    unsupported("operand `{}` {}", what,
                elements(i) ? "that depends on symbolic dimensions" : "known only at run time");
  return *values;
}

template <typename T>
static T only_one(const ConverterContext& c, const std::vector<T>& values, std::string_view what) {
  if (values.size() != 1)
    c.bad(kShapeMismatch, "operand `{}` of `{}` has {} elements; expected 1", what, c.name(),
          values.size());
  return values[0];
}

int64_t ConverterContext::int_scalar(size_t i, std::string_view what) {
  return only_one(*this, ints(i, what), what);
}

std::vector<double> ConverterContext::floats(size_t i, std::string_view what) {
  const auto data = constant(i);
  if (!data) unsupported("operand `{}` known only at run time", what);
  if (data->elements() > kMostElements) unsupported("operand `{}` of that size", what);
  std::vector<double> values;
  Dims numbers;
  for (int64_t e = 0; e < data->elements(); ++e) {
    values.push_back(data->at_float(e));
    numbers.push_back(imm(kFloat64, values.back()));
  }
  used_as_number(i, what, numbers);
  return values;
}

double ConverterContext::float_scalar(size_t i, std::string_view what) {
  return only_one(*this, floats(i, what), what);
}

// ---- building

Value ConverterContext::filled(DType dtype, const Ints& shape, double value) const {
  std::vector<std::byte> element;
  const bool known =
      dtype.is_float()
          ? script::append_element(dtype, value, element)
          : script::append_element(
                dtype, dtype.is_bool() ? int64_t{value != 0} : static_cast<int64_t>(value),
                element);
  if (!known) bad(kBadArgument, "{} is no value of {}", value, dtype.str());
  return make<graph::Constant>(TensorData::splat(dtype, shape, std::move(element)));
}

Value ConverterContext::ints_constant(const Ints& values) {
  return make<graph::Constant>(
      TensorData::of(kInt64, {static_cast<int64_t>(values.size())}, values));
}

Value ConverterContext::cast(const Value& value, DType dtype) {
  const DType from = graph::tensor_type(value)->dtype;
  if (from == dtype) return value;
  if (dtype.is_string()) {
    const bool is_short_float = from.is_float() && from.bits < 32;
    return op("string.to_text", {is_short_float     ? cast(value, kFloat32)
                                 : from.is_narrow() ? cast(value, kInt32)
                                                    : value});
  }
  if (from.is_string()) {
    const DType read = dtype == kFloat64 ? kFloat64 : dtype.is_float() ? kFloat32 : kInt64;
    return cast(op("string.parse", {value}, {{"dtype", read}}), dtype);
  }
  return op("astype", {value}, {{"dtype", dtype}});
}

Value ConverterContext::reshape(const Value& value, const Dims& dims) {
  if (arith::proves_equal(*shaped(value)->shape, dims)) return value;
  return op("reshape", {value, shape_value(dims)});
}

Value ConverterContext::transpose(const Value& value, const Ints& axes) {
  if (std::is_sorted(axes.begin(), axes.end())) return value;
  return op("permute_dims", {value}, {{"axes", axes}});
}

// ---- arithmetic

int64_t ConverterContext::axis(int64_t axis, int64_t ndim) const {
  if (axis < -ndim || axis >= ndim)
    bad(kBadAttribute, "`{}` has axis {}; expected {} to {} for a tensor of rank {}", name_, axis,
        -ndim, ndim - 1, ndim);
  return axis < 0 ? axis + ndim : axis;
}

Ints ConverterContext::axes(Ints axes, int64_t ndim) const {
  std::set<int64_t> seen;
  for (int64_t& a : axes) {
    a = axis(a, ndim);
    if (!seen.insert(a).second) bad(kBadAttribute, "axis {} is given twice to `{}`", a, name_);
  }
  return axes;
}

}  // namespace tenon::importers
