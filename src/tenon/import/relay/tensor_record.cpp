// SPDX-License-Identifier: Apache-2.0
#include "tenon/import/relay/tensor_record.h"

#include <array>

namespace tenon::relay {

std::span<const std::byte> Bytes::take(uint64_t length, std::string_view part) {
  if (length > bytes_.size() - at_)
    fail("ends inside {}: {} bytes are needed, {} are left", part, length, bytes_.size() - at_);
  const auto out = bytes_.subspan(at_, static_cast<size_t>(length));
  at_ += static_cast<size_t>(length);
  return out;
}

static DType element_type(const Bytes& bytes, int code, int bits, int lanes) {
  if (lanes != 1) bytes.fail("an element of {} lanes; expected 1", lanes);
  DType::Code kind = DType::Code::kVoid;
  switch (code) {
    case 0: kind = DType::Code::kInt; break;
    case 1: kind = bits == 1 ? DType::Code::kBool : DType::Code::kUInt; break;
    case 2: kind = DType::Code::kFloat; break;
    case 4: kind = DType::Code::kBFloat; break;
    default: bytes.fail("element type code {}; expected 0, 1, 2 or 4", code);
  }
  const DType dtype{kind, static_cast<uint8_t>(kind == DType::Code::kBool ? 8 : bits), 1};
  const bool fits = kind == DType::Code::kBFloat  ? bits == 16
                    : kind == DType::Code::kFloat ? bits == 16 || bits == 32 || bits == 64
                    : kind == DType::Code::kBool
                        ? true
                        : bits == 8 || bits == 16 || bits == 32 || bits == 64;
  if (!fits) bytes.fail("an element type of code {} with {} bits", code, bits);
  return dtype;
}

Ref<TensorData> read_tensor(Bytes& bytes) {
  constexpr uint64_t kMagic = 0xDD5E40F096B4A13FULL;
  constexpr int32_t kMostDims = 64;
  if (bytes.number<uint64_t>() != kMagic)
    bytes.fail("a tensor does not begin with its magic number");
  (void)bytes.number<uint64_t>();                                // reserved
  (void)bytes.number<int32_t>(), (void)bytes.number<int32_t>();  // the device it was saved from
  const auto ndim = bytes.number<int32_t>();
  if (ndim < 0 || ndim > kMostDims)
    bytes.fail("a tensor of {} dimensions; expected at most {}", ndim, kMostDims);
  const auto code = bytes.number<uint8_t>(), bits = bytes.number<uint8_t>();
  const auto lanes = bytes.number<uint16_t>();
  const DType dtype = element_type(bytes, code, bits, lanes);
  std::vector<int64_t> shape;
  for (int32_t d = 0; d < ndim; ++d) {
    shape.push_back(bytes.number<int64_t>());
    if (shape.back() < 0) bytes.fail("shape {} has a negative dimension", str(shape));
  }
  const int64_t wanted = checked_elements(shape, dtype.bytes(), bytes.origin()) * dtype.bytes();
  const auto size = bytes.number<int64_t>();
  if (size != wanted)
    bytes.fail("a tensor of shape {} and type {} has {} bytes; expected {}", str(shape),
               dtype.str(), size, wanted);
  const auto data = bytes.take(static_cast<uint64_t>(size), "the elements of a tensor");
  if (dtype.is_bool())
    for (const std::byte b : data)
      if (b > std::byte{1}) bytes.fail("an element of type bool is neither 0 nor 1");
  const auto address = reinterpret_cast<uintptr_t>(data.data());
  if (address % static_cast<uintptr_t>(dtype.bytes()) != 0)
    return TensorData::owned(dtype, std::move(shape), {data.begin(), data.end()}, bytes.origin());
  return TensorData::view(dtype, std::move(shape), data, bytes.keeper(), bytes.origin());
}

std::optional<std::vector<std::byte>> decode_base64(std::string_view text) {
  static const std::array<int8_t, 256> kValues = [] {
    std::array<int8_t, 256> values{};
    values.fill(-1);
    const std::string_view letters =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < letters.size(); ++i)
      values[static_cast<unsigned char>(letters[i])] = static_cast<int8_t>(i);
    return values;
  }();
  std::vector<std::byte> out;
  out.reserve(text.size() / 4 * 3 + 3);
  uint32_t buffer = 0;
  int bits = 0;
  size_t padding = 0;
  for (const char c : text) {
    if (c == '\n' || c == '\r' || c == ' ') continue;
    if (c == '=') {
      ++padding;
      continue;
    }
    const int value = kValues[static_cast<unsigned char>(c)];
    if (value < 0 || padding > 0) return std::nullopt;
    buffer = (buffer << 6) | static_cast<uint32_t>(value);
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      out.push_back(static_cast<std::byte>((buffer >> bits) & 0xff));
    }
  }
  if (padding > 2 || bits >= 6) return std::nullopt;
  return out;
}

}  // namespace tenon::relay
