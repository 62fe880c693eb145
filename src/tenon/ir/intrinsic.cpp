// SPDX-License-Identifier: Apache-2.0
#include "tenon/ir/intrinsic.h"

#include <array>
#include <unordered_map>

#include "tenon/ir/intrinsic_operands.h"

namespace tenon {

using R = Intrinsic::Result;
using enum OperandKind;
static constexpr Effect kPure = Effect::kPure, kRead = Effect::kRead, kOpaque = Effect::kOpaque;

struct Row {
  Intrinsic intrinsic;
  std::array<OperandKind, 4> operands;  // kAny beyond those that are stated
};

// In the order of IntrinsicId; of each what it is, then what it takes.
static constexpr Row kIntrinsics[] = {
    // elementary functions of floats
    {{IntrinsicId::kExp, "exp", 1, kPure, R::kSame, "e to the power x"}, {kFloat}},
    {{IntrinsicId::kExp2, "exp2", 1, kPure, R::kSame, "2 to the power x"}, {kFloat}},
    {{IntrinsicId::kExp10, "exp10", 1, kPure, R::kSame, "10 to the power x"}, {kFloat}},
    {{IntrinsicId::kLog, "log", 1, kPure, R::kSame, "natural logarithm"}, {kFloat}},
    {{IntrinsicId::kLog1p, "log1p", 1, kPure, R::kSame, "log(1 + x)"}, {kFloat}},
    {{IntrinsicId::kLog2, "log2", 1, kPure, R::kSame, "logarithm to base 2"}, {kFloat}},
    {{IntrinsicId::kLog10, "log10", 1, kPure, R::kSame, "logarithm to base 10"}, {kFloat}},
    {{IntrinsicId::kSqrt, "sqrt", 1, kPure, R::kSame, "square root"}, {kFloat}},
    {{IntrinsicId::kRsqrt, "rsqrt", 1, kPure, R::kSame, "1 / sqrt(x)"}, {kFloat}},
    {{IntrinsicId::kSin, "sin", 1, kPure, R::kSame, "sine"}, {kFloat}},
    {{IntrinsicId::kCos, "cos", 1, kPure, R::kSame, "cosine"}, {kFloat}},
    {{IntrinsicId::kTan, "tan", 1, kPure, R::kSame, "tangent"}, {kFloat}},
    {{IntrinsicId::kAsin, "asin", 1, kPure, R::kSame, "inverse sine"}, {kFloat}},
    {{IntrinsicId::kAcos, "acos", 1, kPure, R::kSame, "inverse cosine"}, {kFloat}},
    {{IntrinsicId::kAtan, "atan", 1, kPure, R::kSame, "inverse tangent"}, {kFloat}},
    {{IntrinsicId::kSinh, "sinh", 1, kPure, R::kSame, "hyperbolic sine"}, {kFloat}},
    {{IntrinsicId::kCosh, "cosh", 1, kPure, R::kSame, "hyperbolic cosine"}, {kFloat}},
    {{IntrinsicId::kTanh, "tanh", 1, kPure, R::kSame, "hyperbolic tangent"}, {kFloat}},
    {{IntrinsicId::kAsinh, "asinh", 1, kPure, R::kSame, "inverse hyperbolic sine"}, {kFloat}},
    {{IntrinsicId::kAcosh, "acosh", 1, kPure, R::kSame, "inverse hyperbolic cosine"}, {kFloat}},
    {{IntrinsicId::kAtanh, "atanh", 1, kPure, R::kSame, "inverse hyperbolic tangent"}, {kFloat}},
    {{IntrinsicId::kErf, "erf", 1, kPure, R::kSame, "error function"}, {kFloat}},
    {{IntrinsicId::kSigmoid, "sigmoid", 1, kPure, R::kSame, "1 / (1 + exp(-x))"}, {kFloat}},
    {{IntrinsicId::kFloor, "floor", 1, kPure, R::kSame, "greatest integer not above x"}, {kNumber}},
    {{IntrinsicId::kCeil, "ceil", 1, kPure, R::kSame, "least integer not below x"}, {kNumber}},
    {{IntrinsicId::kTrunc, "trunc", 1, kPure, R::kSame, "x towards zero"}, {kNumber}},
    {{IntrinsicId::kRound, "round", 1, kPure, R::kSame, "nearest integer, ties to even"},
     {kNumber}},
    {{IntrinsicId::kNearbyint, "nearbyint", 1, kPure, R::kSame, "nearest integer, ties to even"},
     {kNumber}},
    {{IntrinsicId::kFabs, "fabs", 1, kPure, R::kSame, "absolute value"}, {kNumber}},
    {{IntrinsicId::kAbs, "abs", 1, kPure, R::kSame, "absolute value"}, {kNumber}},
    {{IntrinsicId::kPow, "pow", 2, kPure, R::kSame, "x to the power y"}, {kNumber, kSame}},
    {{IntrinsicId::kAtan2, "atan2", 2, kPure, R::kSame, "angle of (y, x)"}, {kFloat, kSame}},
    {{IntrinsicId::kFmod, "fmod", 2, kPure, R::kSame, "remainder with the dividend's sign"},
     {kFloat, kSame}},
    {{IntrinsicId::kHypot, "hypot", 2, kPure, R::kSame, "sqrt(x * x + y * y)"}, {kFloat, kSame}},
    {{IntrinsicId::kCopysign, "copysign", 2, kPure, R::kSame, "magnitude of x, sign of y"},
     {kFloat, kSame}},
    {{IntrinsicId::kLdexp, "ldexp", 2, kPure, R::kSame, "x * 2 ** n, n an integer"},
     {kFloat, kInteger}},
    {{IntrinsicId::kNextafter, "nextafter", 2, kPure, R::kSame, "the next float after x towards y"},
     {kFloat, kSame}},
    {{IntrinsicId::kFma, "fma", 3, kPure, R::kSame, "a * b + c, rounded once"},
     {kFloat, kSame, kSame}},
    {{IntrinsicId::kIsnan, "isnan", 1, kPure, R::kBool, "whether x is NaN"}, {kScalar}},
    {{IntrinsicId::kIsinf, "isinf", 1, kPure, R::kBool, "whether x is infinite"}, {kScalar}},
    {{IntrinsicId::kIsfinite, "isfinite", 1, kPure, R::kBool, "whether x is neither"}, {kScalar}},
    // integers
    {{IntrinsicId::kShiftLeft, "shift_left", 2, kPure, R::kSame, "x << n"}, {kInteger, kSame}},
    {{IntrinsicId::kShiftRight, "shift_right", 2, kPure, R::kSame,
      "x >> n; arithmetic for signed x"},
     {kInteger, kSame}},
    {{IntrinsicId::kBitwiseAnd, "bitwise_and", 2, kPure, R::kSame, "x & y"}, {kBits, kSame}},
    {{IntrinsicId::kBitwiseOr, "bitwise_or", 2, kPure, R::kSame, "x | y"}, {kBits, kSame}},
    {{IntrinsicId::kBitwiseXor, "bitwise_xor", 2, kPure, R::kSame, "x ^ y"}, {kBits, kSame}},
    {{IntrinsicId::kBitwiseNot, "bitwise_not", 1, kPure, R::kSame, "~x"}, {kBits}},
    {{IntrinsicId::kPopcount, "popcount", 1, kPure, R::kSame, "number of set bits"}, {kInteger}},
    {{IntrinsicId::kClz, "clz", 1, kPure, R::kSame, "leading zero bits"}, {kInteger}},
    {{IntrinsicId::kDot4, "dot4", 2, kPure, R::kLast,
      "sum of the products of four numbers of 8 bits, signed in an int32 and unsigned in a uint32"},
     {kWord, kWord}},
    {{IntrinsicId::kQMultiplyShift, "q_multiply_shift", 4, kPure, R::kSame,
      "fixed-point product: x * y / 2 ** (q + 1 - s), rounded"},
     {kInteger, kInteger, kInteger, kInteger}},
    // constants of a dtype
    {{IntrinsicId::kMinValue, "min_value", 0, kPure, R::kGiven, "least finite value"}, {}},
    {{IntrinsicId::kMaxValue, "max_value", 0, kPure, R::kGiven, "greatest finite value"}, {}},
    {{IntrinsicId::kInfinity, "infinity", 0, kPure, R::kGiven, "positive infinity"}, {}},
    {{IntrinsicId::kNumThreads, "num_threads", 0, kPure, R::kGiven,
      "threads of the run: for libraries with their own"},
     {}},
    // control and annotation
    {{IntrinsicId::kIfThenElse, "if_then_else", 3, kPure, R::kLast,
      "one of two values; only that one is evaluated"},
     {kCondition, kAny, kSame}},
    {{IntrinsicId::kLikely, "likely", 1, kPure, R::kSame, "a condition expected to hold"},
     {kCondition}},
    {{IntrinsicId::kCheckIndex, "check_index", 3, kPure, R::kSame,
      "an index of at least 0 and below an extent; any other stops the program with the message"},
     {kInteger, kInteger, kPointer}},
    {{IntrinsicId::kAssume, "assume", 1, kOpaque, R::kVoid, "a condition known to hold"},
     {kCondition}},
    {{IntrinsicId::kUndef, "undef", 0, kPure, R::kGiven, "any value"}, {}},
    {{IntrinsicId::kRet, "ret", -1, kOpaque, R::kVoid,
      "ends the function, with its value if it has one"},
     {}},
    {{IntrinsicId::kReinterpret, "reinterpret", 1, kPure, R::kGiven,
      "the same bits as another dtype"},
     {kAny}},
    // memory
    {{IntrinsicId::kAddressOf, "address_of", 1, kPure, R::kHandle,
      "pointer to the element that a BufferLoad names"},
     {kAny}},
    {{IntrinsicId::kTvmAccessPtr, "tvm_access_ptr", -1, kPure, R::kHandle,
      "pointer into a buffer: type, data, offset, extent, mode"},
     {}},
    {{IntrinsicId::kPrefetch, "prefetch", 3, kOpaque, R::kVoid,
      "hint: element that a BufferLoad names, write (0 or 1), locality (0 to 3)"},
     {kAny, kInteger, kInteger}},
    {{IntrinsicId::kIsnullptr, "isnullptr", 1, kPure, R::kBool, "whether a pointer is null"},
     {kPointer}},
    // vectors
    {{IntrinsicId::kVectorlow, "vectorlow", 1, kPure, R::kGiven, "lower half of a vector"}, {kAny}},
    {{IntrinsicId::kVectorhigh, "vectorhigh", 1, kPure, R::kGiven, "upper half of a vector"},
     {kAny}},
    {{IntrinsicId::kVectorcombine, "vectorcombine", 2, kPure, R::kGiven, "two halves joined"},
     {kAny, kSame}},
    {{IntrinsicId::kMaskedLoad, "masked_load", 3, kRead, R::kLast,
      "a BufferLoad of a Ramp under a mask; where it is false, the third argument"},
     {kAny, kCondition, kAny}},
    {{IntrinsicId::kMaskedStore, "masked_store", 3, kOpaque, R::kVoid,
      "stores the third argument where a BufferLoad of a Ramp names, under a mask"},
     {kAny, kCondition, kAny}},
    // foreign functions, unchecked
    {{IntrinsicId::kCallExtern, "call_extern", -1, kOpaque, R::kGiven,
      "C function by name: T.call_extern(dtype, name, args...)"},
     {}},
    {{IntrinsicId::kCallPureExtern, "call_pure_extern", -1, kPure, R::kGiven,
      "the same without effects"},
     {}},
    {{IntrinsicId::kCallPacked, "call_packed", -1, kOpaque, R::kGiven,
      "registered function by name"},
     {}},
    {{IntrinsicId::kCallCpacked, "call_cpacked", -1, kOpaque, R::kGiven,
      "packed C function by name"},
     {}},
    {{IntrinsicId::kCallLlvmIntrin, "call_llvm_intrin", -1, kOpaque, R::kGiven,
      "LLVM intrinsic by name"},
     {}},
    {{IntrinsicId::kCallLlvmPureIntrin, "call_llvm_pure_intrin", -1, kPure, R::kGiven,
      "LLVM intrinsic by name, without effects"},
     {}},
    {{IntrinsicId::kCallIntrin, "call_intrin", -1, kOpaque, R::kGiven, "intrinsic by name"}, {}},
    {{IntrinsicId::kTvmTuple, "tvm_tuple", -1, kPure, R::kHandle, "arguments held together"}, {}},
};

static constexpr bool is_in_order() {
  for (size_t i = 0; i < std::size(kIntrinsics); ++i)
    if (static_cast<size_t>(kIntrinsics[i].intrinsic.id) != i) return false;
  return std::size(kIntrinsics) == kIntrinsicCount;
}
static_assert(is_in_order(), "an intrinsic without a row, or a row out of order");

const Intrinsic& intrinsic(IntrinsicId id) {
  return kIntrinsics[static_cast<size_t>(id)].intrinsic;
}

const Intrinsic* find_intrinsic(std::string_view name) {
  static const auto kByName = [] {
    std::unordered_map<std::string_view, const Intrinsic*> map;
    for (const Row& row : kIntrinsics) map.emplace(row.intrinsic.name, &row.intrinsic);
    return map;
  }();
  const auto it = kByName.find(name);
  return it == kByName.end() ? nullptr : it->second;
}

static std::string_view expected(OperandKind kind) {
  switch (kind) {
    case kAny:
    case kSame: return "any";
    case kFloat: return "a float";
    case kInteger: return "an integer";
    case kNumber: return "a float or an integer";
    case kWord: return "int32 or uint32";
    case kBits: return "an integer or bool";
    case kScalar: return "a float, an integer or bool";
    case kCondition: return "bool";
    case kPointer: return "a pointer";
  }
  unreachable("a kind of operand");
}

static bool fits(DType dtype, OperandKind kind) {
  switch (kind) {
    case kAny:
    case kSame: return true;
    case kFloat: return dtype.is_float();
    case kInteger: return dtype.is_integer();
    case kNumber: return dtype.is_float() || dtype.is_integer();
    case kWord: return dtype.is_integer() && dtype.bits == 32;
    case kBits: return dtype.is_integer() || dtype.is_bool();
    case kScalar: return dtype.is_float() || dtype.is_integer() || dtype.is_bool();
    case kCondition: return dtype.is_bool();
    case kPointer: return dtype.is_handle();
  }
  unreachable("a kind of operand");
}

void check_operands(const Intrinsic& op, std::span<const NodePtr> args, const Origin& origin) {
  const Row& row = kIntrinsics[static_cast<size_t>(op.id)];
  for (size_t i = 0; i < args.size() && i < row.operands.size(); ++i) {
    const auto* arg = args[i].as<ExprNode>();
    if (!arg) continue;  // a region, which only calls by name take
    const OperandKind kind = row.operands[i];
    const Origin& place = arg->origin ? arg->origin : origin;
    if (!fits(arg->dtype, kind))
      throw CompileError(kDTypeMismatch, place, "argument {} of `T.{}` has dtype {}; expected {}",
                         i + 1, op.name, arg->dtype.str(), expected(kind));
    const auto* before = kind == kSame ? args[i - 1].as<ExprNode>() : nullptr;
    if (before && before->dtype != arg->dtype)
      throw CompileError(kDTypeMismatch, origin,
                         "arguments {} and {} of `T.{}` have dtypes {} and {}", i, i + 1, op.name,
                         before->dtype.str(), arg->dtype.str());
  }
}

}  // namespace tenon
