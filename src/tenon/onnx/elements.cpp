#include "tenon/onnx/elements.h"

#include <bit>
#include <cstring>

namespace tenon::onnx {

static bool holds(DType dtype) {
  return dtype == kInt64 || dtype == kInt32 || dtype.is_bool() || dtype == kFloat32 ||
         dtype == kFloat64;
}

// The nearest float16, ties to even.
static uint16_t half_bits(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00;
  if (magnitude >= 0x477ff000) return sign | 0x7c00;  // beyond the greatest half, or infinite
  if (magnitude >= 0x38800000) {
    const uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
    return static_cast<uint16_t>(sign | (rounded - 0x38000000) >> 13);
  }
  // Subnormal: adding 0.5 places the bits.
  const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
  return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000));
}

// The nearest bfloat16, ties to even.
static uint16_t bfloat_bits(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (value != value) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
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
        const uint16_t half = dtype == kFloat16 ? half_bits(narrow) : bfloat_bits(narrow);
        std::memcpy(bytes.data() + at, &half, width);
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

}  // namespace tenon::onnx
