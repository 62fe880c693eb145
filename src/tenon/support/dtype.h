// SPDX-License-Identifier: Apache-2.0
// Element types of tensors, buffers and scalar expressions.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace tenon {

/// A scalar type with its width in bits and, for vectors, the number of lanes.
struct DType {
  enum class Code : uint8_t {
    kInt,
    kUInt,
    kFloat,
    kBFloat,
    kBool,
    kHandle,
    kVoid,
    kFloat8e4m3fn,
    kFloat8e5m2
  };
  Code code = Code::kVoid;
  uint8_t bits = 0;
  uint16_t lanes = 1;

  constexpr bool operator==(const DType&) const = default;

  constexpr bool is_int() const { return code == Code::kInt; }
  constexpr bool is_uint() const { return code == Code::kUInt; }
  constexpr bool is_integer() const { return is_int() || is_uint(); }
  constexpr bool is_float() const {
    return code == Code::kFloat || code == Code::kBFloat || code == Code::kFloat8e4m3fn ||
           code == Code::kFloat8e5m2;
  }
  constexpr bool is_bool() const { return code == Code::kBool; }
  constexpr bool is_handle() const { return code == Code::kHandle; }
  constexpr bool is_void() const { return code == Code::kVoid; }
  constexpr bool is_scalar() const { return lanes == 1; }
  constexpr bool is_vector() const { return lanes > 1; }

  constexpr DType element() const { return {code, bits, 1}; }
  constexpr DType with_lanes(int n) const { return {code, bits, static_cast<uint16_t>(n)}; }
  /// Bytes of one element in memory, lanes included; a bool is one byte.
  constexpr int64_t bytes() const { return int64_t{lanes} * ((bits + 7) / 8); }

  /// "float32", "int8", "bool", "handle", "float32x16"; the text that parse() reads.
  std::string str() const;
  static std::optional<DType> parse(std::string_view text);
};

inline constexpr DType kInt8{DType::Code::kInt, 8}, kInt16{DType::Code::kInt, 16},
    kInt32{DType::Code::kInt, 32}, kInt64{DType::Code::kInt, 64};
inline constexpr DType kUInt8{DType::Code::kUInt, 8}, kUInt16{DType::Code::kUInt, 16},
    kUInt32{DType::Code::kUInt, 32}, kUInt64{DType::Code::kUInt, 64};
inline constexpr DType kFloat16{DType::Code::kFloat, 16}, kFloat32{DType::Code::kFloat, 32},
    kFloat64{DType::Code::kFloat, 64}, kBFloat16{DType::Code::kBFloat, 16};
inline constexpr DType kBool{DType::Code::kBool, 8}, kHandle{DType::Code::kHandle, 64},
    kVoid{DType::Code::kVoid, 0};

}  // namespace tenon

template <>
struct std::hash<tenon::DType> {
  size_t operator()(const tenon::DType& t) const noexcept {
    return static_cast<size_t>(t.code) << 24 | static_cast<size_t>(t.bits) << 16 | t.lanes;
  }
};
