// SPDX-License-Identifier: Apache-2.0
#include "tenon/script/constants.h"

#include <charconv>
#include <cmath>
#include <cstring>

#include "tenon/support/narrow_float.h"

namespace tenon::script {

const std::string& ConstantStore::add(const Ref<TensorData>& data) {
  const auto [it, added] = index_.emplace(data->content_hash(), items_.size());
  if (added) items_.push_back(data);
  return it->first;
}

Ref<TensorData> ConstantStore::find(std::string_view hash) const {
  const auto it = index_.find(std::string(hash));
  return it == index_.end() ? nullptr : items_[it->second];
}

template <typename T>
static void append(T value, std::vector<std::byte>& out) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof(T));
}

bool append_element(DType dtype, int64_t value, std::vector<std::byte>& out) {
  if (dtype.lanes != 1) return false;
  if (dtype.is_float()) return append_element(dtype, static_cast<double>(value), out);
  if (dtype.is_bool()) {
    if (value != 0 && value != 1) return false;
    append(static_cast<uint8_t>(value), out);
    return true;
  }
  if (!dtype.is_integer()) return false;
  if (dtype.bits < 64) {
    const int64_t span = int64_t{1} << (dtype.is_int() ? dtype.bits - 1 : dtype.bits);
    if (value >= span || value < (dtype.is_int() ? -span : 0)) return false;
  }
  switch (dtype.storage().bits) {
    case 8: append(static_cast<uint8_t>(value), out); return true;
    case 16: append(static_cast<uint16_t>(value), out); return true;
    case 32: append(static_cast<uint32_t>(value), out); return true;
    case 64: append(value, out); return true;
    default: return false;
  }
}

bool append_element(DType dtype, double value, std::vector<std::byte>& out) {
  if (dtype.lanes != 1) return false;
  if (dtype == kFloat32) {
    append(static_cast<float>(value), out);
  } else if (dtype == kFloat64) {
    append(value, out);
  } else if (dtype.is_float() && dtype.bits == 16) {
    append(narrow_float_bits(dtype, value), out);
  } else if (dtype.is_minifloat()) {
    append(static_cast<uint8_t>(narrow_float_bits(dtype, value)), out);
  } else {
    return false;
  }
  return true;
}

bool has_exact_literals(const TensorData& data) {
  const DType dtype = data.dtype;
  const bool floats = dtype.is_float();
  if (dtype.is_string()) return true;
  if (!floats && !dtype.is_bool() && !dtype.is_integer()) return false;
  if (dtype.lanes != 1) return false;
  const int64_t count = data.is_splat() ? std::min<int64_t>(1, data.elements()) : data.elements();
  const auto bytes = data.is_splat() ? data.splat_element() : data.data();
  const auto width = static_cast<size_t>(dtype.bytes());
  std::vector<std::byte> again;
  for (int64_t i = 0; i < count; ++i) {
    again.clear();
    double real = floats ? data.at_float(i) : 0;
    if (std::isnan(real)) real = std::numeric_limits<double>::quiet_NaN();  // "nan" has no sign
    if (!(floats ? append_element(dtype, real, again)
                 : append_element(dtype, data.at_int(i), again)))
      return false;
    if (std::memcmp(again.data(), bytes.data() + static_cast<size_t>(i) * width, width) != 0)
      return false;
  }
  return true;
}

static double read(std::string_view text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::string float_text(DType dtype, double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::string text;
  if (dtype.element() == kFloat32) {
    const auto narrow = static_cast<float>(value);
    text = fmt::format("{}", narrow);
    // Readers go through double; the rare text that would round twice is written in full.
    if (static_cast<float>(read(text)) != narrow) text = fmt::format("{}", double{narrow});
  } else {
    text = fmt::format("{}", value);
  }
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace tenon::script
