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
    kString,  // 64 bits that stand for a text (support/strings.h)
    // Floats of 8 bits and less; the names say exponent and fraction bits. `fn`: no infinities;
    // `uz`: one zero, without a sign, whose negative is NaN.
    kFloat8e4m3fn,
    kFloat8e4m3fnuz,
    kFloat8e5m2,
    kFloat8e5m2fnuz,
    kFloat8e8m0fnu,  // a power of two
    kFloat4e2m1fn    // no NaN either
  };
  Code code = Code::kVoid;
  uint8_t bits = 0;
  uint16_t lanes = 1;

  constexpr bool operator==(const DType&) const = default;

  constexpr bool is_int() const { return code == Code::kInt; }
  constexpr bool is_uint() const { return code == Code::kUInt; }
  constexpr bool is_integer() const { return is_int() || is_uint(); }
  constexpr bool is_float() const {
    return code == Code::kFloat || code == Code::kBFloat || is_minifloat();
  }
  /// A float of 8 bits or less.
  constexpr bool is_minifloat() const { return code >= Code::kFloat8e4m3fn; }
  /// A type of which machines have elements in memory only: a minifloat, or an integer of less than
  /// 8 bits. LowerIntrinsics makes arithmetic of wider types of what computes with them.
  constexpr bool is_narrow() const { return is_minifloat() || (is_integer() && bits < 8); }
  constexpr bool is_bool() const { return code == Code::kBool; }
  constexpr bool is_handle() const { return code == Code::kHandle; }
  constexpr bool is_string() const { return code == Code::kString; }
  constexpr bool is_void() const { return code == Code::kVoid; }
  constexpr bool is_scalar() const { return lanes == 1; }
  constexpr bool is_vector() const { return lanes > 1; }

  constexpr DType element() const { return {code, bits, 1}; }
  constexpr DType with_lanes(int n) const { return {code, bits, static_cast<uint16_t>(n)}; }
  /// What holds an element in memory and registers: of a narrow type int8 (extended by its sign) or
  /// uint8 (extended by zeros; the bits of a minifloat), of a string int64; every other type itself.
  constexpr DType storage() const {
    if (is_string()) return {Code::kInt, bits, lanes};
    if (!is_narrow()) return *this;
    return {is_int() ? Code::kInt : Code::kUInt, 8, lanes};
  }
  /// Bytes of one element in memory, lanes included; a bool is one byte, and so is a narrow type.
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
inline constexpr DType kInt2{DType::Code::kInt, 2}, kInt4{DType::Code::kInt, 4},
    kUInt2{DType::Code::kUInt, 2}, kUInt4{DType::Code::kUInt, 4};
inline constexpr DType kFloat8e4m3fn{DType::Code::kFloat8e4m3fn, 8},
    kFloat8e4m3fnuz{DType::Code::kFloat8e4m3fnuz, 8}, kFloat8e5m2{DType::Code::kFloat8e5m2, 8},
    kFloat8e5m2fnuz{DType::Code::kFloat8e5m2fnuz, 8},
    kFloat8e8m0fnu{DType::Code::kFloat8e8m0fnu, 8}, kFloat4e2m1fn{DType::Code::kFloat4e2m1fn, 4};
inline constexpr DType kBool{DType::Code::kBool, 8}, kHandle{DType::Code::kHandle, 64},
    kVoid{DType::Code::kVoid, 0}, kString{DType::Code::kString, 64};

}  // namespace tenon

template <>
struct std::hash<tenon::DType> {
  size_t operator()(const tenon::DType& t) const noexcept {
    return static_cast<size_t>(t.code) << 24 | static_cast<size_t>(t.bits) << 16 | t.lanes;
  }
};
