// SPDX-License-Identifier: Apache-2.0
#include "tenon/import/elements.h"

#include <cstring>

#include "tenon/support/narrow_float.h"

namespace tenon::importers {

bool holds(DType dtype) {
  return dtype == kInt64 || dtype == kInt32 || dtype.is_bool() || dtype == kFloat32 ||
         dtype == kFloat64;
}

std::optional<Elements> elements_of(const TensorData& data) {
  if (!holds(data.dtype) || data.elements() > kMostElements) return std::nullopt;
  Elements out{data.dtype, data.shape, {}};
  for (int64_t i = 0; i < data.elements(); ++i) {
    if (data.dtype.is_float()) {
      out.values.push_back(imm(data.dtype, data.at_float(i)));
    } else if (data.dtype.is_bool()) {
      out.values.push_back(boolean(data.at_int(i) != 0));
    } else {
      out.values.push_back(int64(data.at_int(i)));
    }
  }
  return out;
}

Ref<TensorData> tensor_of(const Elements& elements) {
  const DType dtype = elements.dtype;
  const auto width = static_cast<size_t>(dtype.bytes());
  std::vector<std::byte> bytes(elements.values.size() * width);
  size_t at = 0;
  for (const Expr& value : elements.values) {
    if (dtype.is_float()) {
      const auto number = as_float(value);
      if (!number) return nullptr;
      const auto narrow = static_cast<float>(*number);
      if (dtype == kFloat64) {
        std::memcpy(bytes.data() + at, &*number, width);
      } else if (dtype == kFloat32) {
        std::memcpy(bytes.data() + at, &narrow, width);
      } else {
        const uint16_t bits = narrow_float_bits(dtype, *number);
        std::memcpy(bytes.data() + at, &bits, width);  // little endian: the low bytes
      }
    } else {
      const auto number = as_int(value);
      if (!number) return nullptr;
      std::memcpy(bytes.data() + at, &*number, width);  // little endian: the low bytes
    }
    at += width;
  }
  return TensorData::owned(dtype, elements.shape, std::move(bytes));
}

}  // namespace tenon::importers
