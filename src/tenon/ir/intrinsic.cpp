// SPDX-License-Identifier: Apache-2.0
#include "tenon/ir/intrinsic.h"

#include <array>
#include <unordered_map>

namespace tenon {

using R = Intrinsic::Result;
static constexpr Effect kPure = Effect::kPure, kRead = Effect::kRead, kOpaque = Effect::kOpaque;

// In the order of IntrinsicId.
static constexpr Intrinsic kIntrinsics[] = {
    // elementary functions of floats
    {IntrinsicId::kExp, "exp", 1, kPure, R::kSame, "e to the power x"},
    {IntrinsicId::kExp2, "exp2", 1, kPure, R::kSame, "2 to the power x"},
    {IntrinsicId::kExp10, "exp10", 1, kPure, R::kSame, "10 to the power x"},
    {IntrinsicId::kLog, "log", 1, kPure, R::kSame, "natural logarithm"},
    {IntrinsicId::kLog1p, "log1p", 1, kPure, R::kSame, "log(1 + x)"},
    {IntrinsicId::kLog2, "log2", 1, kPure, R::kSame, "logarithm to base 2"},
    {IntrinsicId::kLog10, "log10", 1, kPure, R::kSame, "logarithm to base 10"},
    {IntrinsicId::kSqrt, "sqrt", 1, kPure, R::kSame, "square root"},
    {IntrinsicId::kRsqrt, "rsqrt", 1, kPure, R::kSame, "1 / sqrt(x)"},
    {IntrinsicId::kSin, "sin", 1, kPure, R::kSame, "sine"},
    {IntrinsicId::kCos, "cos", 1, kPure, R::kSame, "cosine"},
    {IntrinsicId::kTan, "tan", 1, kPure, R::kSame, "tangent"},
    {IntrinsicId::kAsin, "asin", 1, kPure, R::kSame, "inverse sine"},
    {IntrinsicId::kAcos, "acos", 1, kPure, R::kSame, "inverse cosine"},
    {IntrinsicId::kAtan, "atan", 1, kPure, R::kSame, "inverse tangent"},
    {IntrinsicId::kSinh, "sinh", 1, kPure, R::kSame, "hyperbolic sine"},
    {IntrinsicId::kCosh, "cosh", 1, kPure, R::kSame, "hyperbolic cosine"},
    {IntrinsicId::kTanh, "tanh", 1, kPure, R::kSame, "hyperbolic tangent"},
    {IntrinsicId::kAsinh, "asinh", 1, kPure, R::kSame, "inverse hyperbolic sine"},
    {IntrinsicId::kAcosh, "acosh", 1, kPure, R::kSame, "inverse hyperbolic cosine"},
    {IntrinsicId::kAtanh, "atanh", 1, kPure, R::kSame, "inverse hyperbolic tangent"},
    {IntrinsicId::kErf, "erf", 1, kPure, R::kSame, "error function"},
    {IntrinsicId::kSigmoid, "sigmoid", 1, kPure, R::kSame, "1 / (1 + exp(-x))"},
    {IntrinsicId::kFloor, "floor", 1, kPure, R::kSame, "greatest integer not above x"},
    {IntrinsicId::kCeil, "ceil", 1, kPure, R::kSame, "least integer not below x"},
    {IntrinsicId::kTrunc, "trunc", 1, kPure, R::kSame, "x towards zero"},
    {IntrinsicId::kRound, "round", 1, kPure, R::kSame, "nearest integer, ties to even"},
    {IntrinsicId::kNearbyint, "nearbyint", 1, kPure, R::kSame, "nearest integer, ties to even"},
    {IntrinsicId::kFabs, "fabs", 1, kPure, R::kSame, "absolute value"},
    {IntrinsicId::kAbs, "abs", 1, kPure, R::kSame, "absolute value"},
    {IntrinsicId::kPow, "pow", 2, kPure, R::kSame, "x to the power y"},
    {IntrinsicId::kAtan2, "atan2", 2, kPure, R::kSame, "angle of (y, x)"},
    {IntrinsicId::kFmod, "fmod", 2, kPure, R::kSame, "remainder with the dividend's sign"},
    {IntrinsicId::kHypot, "hypot", 2, kPure, R::kSame, "sqrt(x * x + y * y)"},
    {IntrinsicId::kCopysign, "copysign", 2, kPure, R::kSame, "magnitude of x, sign of y"},
    {IntrinsicId::kLdexp, "ldexp", 2, kPure, R::kSame, "x * 2 ** n, n an integer"},
    {IntrinsicId::kNextafter, "nextafter", 2, kPure, R::kSame, "the next float after x towards y"},
    {IntrinsicId::kFma, "fma", 3, kPure, R::kSame, "a * b + c, rounded once"},
    {IntrinsicId::kIsnan, "isnan", 1, kPure, R::kBool, "whether x is NaN"},
    {IntrinsicId::kIsinf, "isinf", 1, kPure, R::kBool, "whether x is infinite"},
    {IntrinsicId::kIsfinite, "isfinite", 1, kPure, R::kBool, "whether x is neither"},
    // integers
    {IntrinsicId::kShiftLeft, "shift_left", 2, kPure, R::kSame, "x << n"},
    {IntrinsicId::kShiftRight, "shift_right", 2, kPure, R::kSame,
     "x >> n; arithmetic for signed x"},
    {IntrinsicId::kBitwiseAnd, "bitwise_and", 2, kPure, R::kSame, "x & y"},
    {IntrinsicId::kBitwiseOr, "bitwise_or", 2, kPure, R::kSame, "x | y"},
    {IntrinsicId::kBitwiseXor, "bitwise_xor", 2, kPure, R::kSame, "x ^ y"},
    {IntrinsicId::kBitwiseNot, "bitwise_not", 1, kPure, R::kSame, "~x"},
    {IntrinsicId::kPopcount, "popcount", 1, kPure, R::kSame, "number of set bits"},
    {IntrinsicId::kClz, "clz", 1, kPure, R::kSame, "leading zero bits"},
    {IntrinsicId::kQMultiplyShift, "q_multiply_shift", 4, kPure, R::kSame,
     "fixed-point product: x * y / 2 ** (q + 1 - s), rounded"},
    // constants of a dtype
    {IntrinsicId::kMinValue, "min_value", 0, kPure, R::kGiven, "least finite value"},
    {IntrinsicId::kMaxValue, "max_value", 0, kPure, R::kGiven, "greatest finite value"},
    {IntrinsicId::kInfinity, "infinity", 0, kPure, R::kGiven, "positive infinity"},
    {IntrinsicId::kNumThreads, "num_threads", 0, kPure, R::kGiven,
     "threads of the run: for libraries with their own"},
    // control and annotation
    {IntrinsicId::kIfThenElse, "if_then_else", 3, kPure, R::kLast,
     "one of two values; only that one is evaluated"},
    {IntrinsicId::kLikely, "likely", 1, kPure, R::kSame, "a condition expected to hold"},
    {IntrinsicId::kCheckIndex, "check_index", 3, kPure, R::kSame,
     "an index of at least 0 and below an extent; any other stops the program with the message"},
    {IntrinsicId::kAssume, "assume", 1, kOpaque, R::kVoid, "a condition known to hold"},
    {IntrinsicId::kUndef, "undef", 0, kPure, R::kGiven, "any value"},
    {IntrinsicId::kRet, "ret", -1, kOpaque, R::kVoid,
     "ends the function, with its value if it has one"},
    {IntrinsicId::kReinterpret, "reinterpret", 1, kPure, R::kGiven,
     "the same bits as another dtype"},
    // memory
    {IntrinsicId::kAddressOf, "address_of", 1, kPure, R::kHandle,
     "pointer to the element that a BufferLoad names"},
    {IntrinsicId::kTvmAccessPtr, "tvm_access_ptr", -1, kPure, R::kHandle,
     "pointer into a buffer: type, data, offset, extent, mode"},
    {IntrinsicId::kPrefetch, "prefetch", 3, kOpaque, R::kVoid,
     "hint: element that a BufferLoad names, write (0 or 1), locality (0 to 3)"},
    {IntrinsicId::kIsnullptr, "isnullptr", 1, kPure, R::kBool, "whether a pointer is null"},
    // vectors
    {IntrinsicId::kVectorlow, "vectorlow", 1, kPure, R::kGiven, "lower half of a vector"},
    {IntrinsicId::kVectorhigh, "vectorhigh", 1, kPure, R::kGiven, "upper half of a vector"},
    {IntrinsicId::kVectorcombine, "vectorcombine", 2, kPure, R::kGiven, "two halves joined"},
    {IntrinsicId::kMaskedLoad, "masked_load", 3, kRead, R::kLast,
     "a BufferLoad of a Ramp under a mask; where it is false, the third argument"},
    {IntrinsicId::kMaskedStore, "masked_store", 3, kOpaque, R::kVoid,
     "stores the third argument where a BufferLoad of a Ramp names, under a mask"},
    // foreign functions, unchecked
    {IntrinsicId::kCallExtern, "call_extern", -1, kOpaque, R::kGiven,
     "C function by name: T.call_extern(dtype, name, args...)"},
    {IntrinsicId::kCallPureExtern, "call_pure_extern", -1, kPure, R::kGiven,
     "the same without effects"},
    {IntrinsicId::kCallPacked, "call_packed", -1, kOpaque, R::kGiven,
     "registered function by name"},
    {IntrinsicId::kCallCpacked, "call_cpacked", -1, kOpaque, R::kGiven,
     "packed C function by name"},
    {IntrinsicId::kCallLlvmIntrin, "call_llvm_intrin", -1, kOpaque, R::kGiven,
     "LLVM intrinsic by name"},
    {IntrinsicId::kCallLlvmPureIntrin, "call_llvm_pure_intrin", -1, kPure, R::kGiven,
     "LLVM intrinsic by name, without effects"},
    {IntrinsicId::kCallIntrin, "call_intrin", -1, kOpaque, R::kGiven, "intrinsic by name"},
    {IntrinsicId::kTvmTuple, "tvm_tuple", -1, kPure, R::kHandle, "arguments held together"},
};

static constexpr bool is_in_order() {
  for (size_t i = 0; i < std::size(kIntrinsics); ++i)
    if (static_cast<size_t>(kIntrinsics[i].id) != i) return false;
  return std::size(kIntrinsics) == kIntrinsicCount;
}
static_assert(is_in_order(), "an intrinsic without a row, or a row out of order");

const Intrinsic& intrinsic(IntrinsicId id) { return kIntrinsics[static_cast<size_t>(id)]; }

const Intrinsic* find_intrinsic(std::string_view name) {
  static const auto kByName = [] {
    std::unordered_map<std::string_view, const Intrinsic*> map;
    for (const Intrinsic& intrinsic : kIntrinsics) map.emplace(intrinsic.name, &intrinsic);
    return map;
  }();
  const auto it = kByName.find(name);
  return it == kByName.end() ? nullptr : it->second;
}

}  // namespace tenon
