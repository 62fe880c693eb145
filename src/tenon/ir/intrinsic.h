// SPDX-License-Identifier: Apache-2.0
// Intrinsics: the scalar operations that TensorIR names (`T.exp`, `T.if_then_else`,
// `T.call_extern`, ...). An intrinsic is an enumerator here and a row of the table in intrinsic.cpp.
// What gives every intrinsic a meaning (native code, C, the interpreter) is a switch over
// IntrinsicId without a default, so a new one does not compile until each has an answer for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tenon/ir/node.h"

namespace tenon {

enum class IntrinsicId : uint8_t {
  // elementary functions of floats
  kExp,
  kExp2,
  kExp10,
  kLog,
  kLog1p,
  kLog2,
  kLog10,
  kSqrt,
  kRsqrt,
  kSin,
  kCos,
  kTan,
  kAsin,
  kAcos,
  kAtan,
  kSinh,
  kCosh,
  kTanh,
  kAsinh,
  kAcosh,
  kAtanh,
  kErf,
  kSigmoid,
  kFloor,
  kCeil,
  kTrunc,
  kRound,
  kNearbyint,
  kFabs,
  kAbs,
  kPow,
  kAtan2,
  kFmod,
  kHypot,
  kCopysign,
  kLdexp,
  kNextafter,
  kFma,
  kIsnan,
  kIsinf,
  kIsfinite,
  // integers
  kShiftLeft,
  kShiftRight,
  kBitwiseAnd,
  kBitwiseOr,
  kBitwiseXor,
  kBitwiseNot,
  kPopcount,
  kClz,
  kDot4,
  kQMultiplyShift,
  // constants of a dtype
  kMinValue,
  kMaxValue,
  kInfinity,
  kNumThreads,
  // control and annotation
  kIfThenElse,
  kLikely,
  kCheckIndex,
  kAssume,
  kUndef,
  kRet,
  kReinterpret,
  // memory
  kAddressOf,
  kTvmAccessPtr,
  kPrefetch,
  kIsnullptr,
  // vectors
  kVectorlow,
  kVectorhigh,
  kVectorcombine,
  kMaskedLoad,
  kMaskedStore,
  // foreign functions, unchecked
  kCallExtern,
  kCallPureExtern,
  kCallPacked,
  kCallCpacked,
  kCallLlvmIntrin,
  kCallLlvmPureIntrin,
  kCallIntrin,
  kTvmTuple,
};
inline constexpr size_t kIntrinsicCount = static_cast<size_t>(IntrinsicId::kTvmTuple) + 1;

/// What an intrinsic does besides giving a value.
enum class Effect : uint8_t { kPure, kRead, kOpaque };  // opaque: may write, print, or not return

/// A row of the table.
struct Intrinsic {
  IntrinsicId id;
  std::string_view name;  // without "T."
  int arguments;          // -1: any number
  Effect effect;
  enum class Result : uint8_t { kSame, kBool, kGiven, kVoid, kHandle, kLast } result;
  // kSame: dtype of the first argument (kLast: of the last); kGiven: stated by the call
  std::string_view summary;
};

/// The row of `id`.
const Intrinsic& intrinsic(IntrinsicId id);
/// Null where there is none of this name.
const Intrinsic* find_intrinsic(std::string_view name);

template <>
struct FieldTraits<const Intrinsic*> : PlainTraits<const Intrinsic*> {
  static uint64_t hash(const Intrinsic* m) {
    return m ? hash_bytes(m->name.data(), m->name.size()) : 0;
  }
  static std::string text(const Intrinsic* m) { return m ? std::string(m->name) : "no intrinsic"; }
};

}  // namespace tenon
