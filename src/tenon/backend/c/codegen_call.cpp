// SPDX-License-Identifier: Apache-2.0
// Generates C for calls of intrinsics.

#include "tenon/backend/c/codegen.h"
#include "tenon/backend/c/scalar_functions.h"
#include "tenon/backend/c/vectors.h"
#include "tenon/backend/limits.h"

namespace tenon::c_backend {

static bool is_small_float(DType t) { return t.is_float() && t.bits == 16; }

Text FunctionCodegen::unary(const Call& call, const std::string& function) {
  const DType dtype = call.dtype;
  Text x = value(call.arg(0));
  const DType wide = is_small_float(dtype) ? kFloat32.with_lanes(dtype.lanes) : dtype;
  if (wide != dtype) x = widened(dtype, x);
  m_.prelude().use_math();
  const Text result = dtype.is_vector() ? apply(vector_unary(m_.prelude(), function, wide), {x})
                                        : apply(function + (wide.bits == 32 ? "f" : ""), {x});
  return wide == dtype ? result : narrowed(dtype, result);
}

Text FunctionCodegen::bitwise(const Call& call) {
  const DType dtype = call.dtype;
  const DType element = dtype.element();
  const std::string suffix = "_" + short_name(element.is_bool() ? kUInt8 : element);
  std::vector<Text> args;
  for (size_t i = 0; i < call.args.size(); ++i) args.push_back(value(call.arg(i)));
  std::string stem, pattern, form;
  if (call.is(IntrinsicId::kShiftLeft) || call.is(IntrinsicId::kShiftRight)) {
    const bool left = call.is(IntrinsicId::kShiftLeft);
    stem = left ? "shl" : "shr";
    const auto count = as_int(call.arg(1));
    if (count && *count >= 0 && *count < dtype.bits) {
      // By a constant: the operator alone. Of a negative number the bits move.
      const std::string c = c_type(element);
      const std::string operand =
          left ? fmt::format("(uint{}_t)$0", std::max<int>(32, element.bits)) : "$0";
      pattern = fmt::format("({})({} {} {})", c, operand, left ? "<<" : ">>", *count);
      if (dtype.is_vector()) {
        const std::string t = m_.prelude().type(dtype);
        const std::string u = m_.prelude().type({DType::Code::kUInt, dtype.bits, dtype.lanes});
        form = left ? fmt::format("(({})(({})$0 << {}))", t, u, *count)
                    : fmt::format("($0 >> {})", *count);
        return apply(m_.prelude().lanewise(fmt::format("{}{}", stem, *count), dtype, {dtype},
                                           pattern, {{"", form}}),
                     {args[0]});
      }
      return scalar(pattern, {args[0]});
    }
    pattern = m_.prelude().function(stem + suffix) + "($0, $1)";
  } else if (call.is(IntrinsicId::kBitwiseNot)) {
    stem = "bitnot";
    pattern = fmt::format("({})~$0", c_type(element));
    form = "(~$0)";
  } else if (call.is(IntrinsicId::kPopcount) || call.is(IntrinsicId::kClz) ||
             call.is(IntrinsicId::kAbs) || call.is(IntrinsicId::kFabs)) {
    stem = call.is(IntrinsicId::kFabs) ? "abs" : std::string(call.op->name);
    pattern = m_.prelude().function(stem + suffix) + "($0)";
  } else {
    const char* sign = call.is(IntrinsicId::kBitwiseAnd)  ? "&"
                       : call.is(IntrinsicId::kBitwiseOr) ? "|"
                                                          : "^";
    stem = call.is(IntrinsicId::kBitwiseAnd)  ? "bitand"
           : call.is(IntrinsicId::kBitwiseOr) ? "bitor"
                                              : "bitxor";
    pattern = element.bits < 32 ? fmt::format("({})($0 {} $1)", c_type(element), sign)
                                : fmt::format("$0 {} $1", sign);
    form = fmt::format("($0 {} $1)", sign);
  }
  if (dtype.is_scalar()) return scalar(pattern, args);
  std::vector<Prelude::Form> forms;
  if (!form.empty()) forms.push_back({"", form});
  return apply(
      m_.prelude().lanewise(stem, dtype, std::vector<DType>(args.size(), dtype), pattern, forms),
      args);
}

// isnan, isinf, isfinite.
Text FunctionCodegen::classify(const Call& call) {
  const DType from = call.arg(0)->dtype;
  const bool nan = call.is(IntrinsicId::kIsnan), finite = call.is(IntrinsicId::kIsfinite);
  Text x = value(call.arg(0));
  if (!from.is_float()) {
    const Text all{finite ? "1" : "0", Text::kAtom};
    if (from.is_scalar()) return all;
    return apply(vector_splat(m_.prelude(), call.dtype), {{finite ? "-1" : "0", Text::kUnary}});
  }
  DType wide = from;
  if (is_small_float(from)) {
    wide = kFloat32.with_lanes(from.lanes);
    x = widened(from, x);
  }
  const std::string greatest = wide.bits == 32 ? "3.4028235e+38f" : "1.7976931348623157e+308";
  const std::string inside = fmt::format("$0 <= {0} && $0 >= -{0}", greatest);
  const std::string pattern = nan      ? "$0 != $0"
                              : finite ? inside
                                       : fmt::format("$0 > {0} || $0 < -{0}", greatest);
  if (from.is_scalar()) {
    if (x.level < Text::kAtom) x = hoist(wide, x);
    std::string text;
    text = fill(pattern, {x.s});
    return {text, Text::kAny};
  }
  const DType mask = kBool.with_lanes(from.lanes);
  std::vector<Prelude::Form> forms;
  if (nan && wide.bits == 32)
    forms.push_back({"", fmt::format("(({})($0 != $0))", m_.prelude().type(mask))});
  return apply(m_.prelude().lanewise(std::string(call.op->name), mask, {wide},
                                     "(" + pattern + ") ? -1 : 0", forms),
               {x});
}

// min_value, max_value, infinity.
Text FunctionCodegen::limit(const Call& call) {
  const DType dtype = call.dtype;
  if (dtype.is_float()) return value(imm(dtype, backend::float_limit(call)));
  const int64_t stated = backend::integer_limit(call);
  if (dtype.is_scalar()) return integer(dtype, stated);
  return apply(vector_splat(m_.prelude(), dtype), {integer(dtype.element(), stated)});
}

Text FunctionCodegen::reinterpret(const Call& call) {
  const DType from = call.arg(0)->dtype, to = call.dtype;
  if (from.is_bool() || to.is_bool() || from.is_handle() || to.is_handle() ||
      from.storage().bits != to.storage().bits || from.lanes != to.lanes)
    throw CompileError(kUnsupported, call.origin, "`T.reinterpret` from {} to {}", from.str(),
                       to.str());
  const Text x = value(call.arg(0));
  // A 16-bit float is its bits already, and so is a narrow type.
  const auto bits = [](DType t) {
    return is_small_float(t) ? kUInt16.with_lanes(t.lanes) : t.storage();
  };
  if (bits(from) == bits(to)) return x;
  if (to.is_vector()) return apply(vector_bits(m_.prelude(), bits(from), bits(to)), {x});
  if (bits(from).is_integer() && bits(to).is_integer())
    return {fmt::format("({}){}", c_type(to), x.at(Text::kUnary)), Text::kUnary};
  return apply(m_.prelude().function("bits_" + short_name(bits(from)) + "_" + short_name(bits(to))),
               {x});
}

// T.check_index: the index, once it is shown to lie in its extent.
Text FunctionCodegen::checked_index(const Call& call) {
  static constexpr int kErrorIndex = 2;  // as in runtime/abi.h
  const auto* message = call.arg(2).as<StringImm>();
  if (call.dtype.is_vector() || !message)
    throw CompileError(kUnsupported, call.origin,
                       "`T.check_index` takes a scalar, its extent and a constant text");
  Text at = value(call.arg(0));
  if (at.level < Text::kAtom) at = hoist(call.dtype, at);
  const Text extent = value(call.arg(1));
  // One comparison of unsigned numbers: an extent is not negative.
  const auto number = as_int(call.arg(1));
  const std::string bound =
      number ? fmt::format("{}u", *number) : fmt::format("(uint64_t){}", extent.at(Text::kUnary));
  fail_unless({fmt::format("(uint64_t){} < {}", at.at(Text::kUnary), bound), Text::kAny},
              kErrorIndex, where(call.origin), message->value, at.s, extent.s);
  return at;
}

// Of floats as `function`; an integer is whole already.
Text FunctionCodegen::rounding(const Call& call, const std::string& function) {
  return call.dtype.is_float() ? unary(call, function) : value(call.arg(0));
}

Text FunctionCodegen::absolute(const Call& call) {
  if (call.dtype.is_float()) return unary(call, "fabs");
  return call.dtype.is_int() ? bitwise(call) : value(call.arg(0));
}

Text FunctionCodegen::inverse_root(const Call& call) {
  const DType dtype = call.dtype;
  const auto root = [&](DType of, const Expr& x) {
    const Expr made = make<Call>(IntrinsicId::kSqrt, std::vector<NodePtr>{x}, kVoid, call.origin);
    return make<Binary>(BinaryOp::kDiv, imm(of, 1.0), made);
  };
  if (!is_small_float(dtype)) return value(root(dtype, call.arg(0)));
  const DType wide = kFloat32.with_lanes(dtype.lanes);
  return value(make<Cast>(dtype, root(wide, make<Cast>(wide, call.arg(0)))));
}

// copysign, fma.
Text FunctionCodegen::nary_float(const Call& call) {
  const DType dtype = call.dtype;
  const DType wide = is_small_float(dtype) ? kFloat32.with_lanes(dtype.lanes) : dtype;
  std::vector<Text> args;
  for (size_t i = 0; i < call.args.size(); ++i) {
    const Text x = value(call.arg(i));
    args.push_back(wide == dtype ? x : widened(dtype, x));
  }
  m_.prelude().use_math();
  const std::string function = std::string(call.op->name) + (wide.bits == 32 ? "f" : "");
  Text result;
  if (dtype.is_scalar()) {
    result = apply(function, args);
  } else if (call.is(IntrinsicId::kFma)) {
    result = apply(vector_fma(m_.prelude(), wide), args);
  } else {
    result = apply(vector_copysign(m_.prelude(), wide), args);
  }
  return wide == dtype ? result : narrowed(dtype, result);
}

Text FunctionCodegen::undefined(const Call& call) {
  if (call.dtype.is_handle()) return {"NULL", Text::kAtom};
  return value(call.dtype.is_float() ? imm(call.dtype, 0.0) : imm(call.dtype, int64_t{0}));
}

void FunctionCodegen::return_statement(const Call& call) {
  if (!info_.function->result.is_void() && !call.args.empty()) {
    const Text result = value(call.arg(0));
    line("*{} = {};", use("result"), result.s);
  }
  line("{}", info_.can_fail || is_entry_ ? "return 0;" : "return;");
}

void FunctionCodegen::prefetch(const Call& call) {
  const auto* node = call.args.at(0).as<tir::BufferLoad>();
  const auto write = as_int(call.arg(1)), locality = as_int(call.arg(2));
  if (!node || !write || !locality)
    throw CompileError(kBadArgument, call.origin, "`T.prefetch` with a mode that is no constant");
  m_.prelude().use_prefetch();
  line("PREFETCH({}, {}, {});", pointer_to(*node->buffer, node->indices, call.origin),
       *write != 0 ? 1 : 0, *locality & 3);
}

// vectorlow, vectorhigh.
Text FunctionCodegen::half_of_vector(const Call& call) {
  const int lanes = call.arg(0)->dtype.lanes, half = call.dtype.lanes;
  const int first = call.is(IntrinsicId::kVectorlow) ? 0 : lanes - half;
  std::vector<int64_t> picked;
  for (int i = 0; i < half; ++i) picked.push_back(first + i);
  return apply(vector_pick(m_.prelude(), {call.arg(0)->dtype}, picked), {value(call.arg(0))});
}

Text FunctionCodegen::joined_vectors(const Call& call) {
  std::vector<int64_t> picked;
  for (int i = 0; i < call.dtype.lanes; ++i) picked.push_back(i);
  return apply(vector_pick(m_.prelude(), {call.arg(0)->dtype, call.arg(1)->dtype}, picked),
               {value(call.arg(0)), value(call.arg(1))});
}

Text FunctionCodegen::call(const Call& call) {
  return call.op ? intrinsic(call) : function_value(call);
}

Text FunctionCodegen::intrinsic(const Call& call) {
  using enum IntrinsicId;
  const Text nothing{"", Text::kAtom};
  switch (call.op->id) {
    case kSqrt: return rounding(call, "sqrt");
    case kFloor: return rounding(call, "floor");
    case kCeil: return rounding(call, "ceil");
    case kTrunc: return rounding(call, "trunc");
    case kRound:
    case kNearbyint: return rounding(call, "rint");
    case kFabs:
    case kAbs: return absolute(call);
    case kRsqrt: return inverse_root(call);
    case kCopysign:
    case kFma: return nary_float(call);
    case kIsnan:
    case kIsinf:
    case kIsfinite: return classify(call);
    case kShiftLeft:
    case kShiftRight:
    case kBitwiseAnd:
    case kBitwiseOr:
    case kBitwiseXor:
    case kBitwiseNot:
    case kPopcount:
    case kClz: return bitwise(call);
    case kMinValue:
    case kMaxValue:
    case kInfinity: return limit(call);
    case kNumThreads: return value(imm(call.dtype, int64_t{1}));  // C runs on its caller's
    case kIfThenElse: return conditional(call.arg(0), call.arg(1), call.arg(2), true);
    case kLikely: return value(call.arg(0));
    case kCheckIndex: return checked_index(call);
    case kAssume: return nothing;
    case kUndef: return undefined(call);
    case kRet: return_statement(call); return nothing;
    case kReinterpret: return reinterpret(call);
    case kAddressOf:
    case kTvmAccessPtr: return pointer_value(ref_to(&call));
    case kPrefetch: prefetch(call); return nothing;
    case kIsnullptr: return {value(call.arg(0)).at(Text::kUnary) + " == NULL", Text::kAny};
    case kVectorlow:
    case kVectorhigh: return half_of_vector(call);
    case kVectorcombine: return joined_vectors(call);
    case kMaskedLoad: return masked(call);
    case kMaskedStore: masked_store_to(call); return nothing;
    case kCallExtern:
    case kCallPureExtern:
    case kCallPacked:
    case kCallCpacked: return foreign_value(call);
    // LowerIntrinsics replaces these by arithmetic, elementary functions among them.
    case kDot4:
    case kExp:
    case kLog:
    case kTanh:
    case kErf:
    case kSigmoid:
    case kExp2:
    case kExp10:
    case kLog1p:
    case kLog2:
    case kLog10:
    case kSin:
    case kCos:
    case kTan:
    case kAsin:
    case kAcos:
    case kAtan:
    case kSinh:
    case kCosh:
    case kAsinh:
    case kAcosh:
    case kAtanh:
    case kPow:
    case kAtan2:
    case kHypot:
    case kFmod:
    // Without a meaning here.
    case kLdexp:
    case kNextafter:
    case kQMultiplyShift:
    case kCallLlvmIntrin:
    case kCallLlvmPureIntrin:
    case kCallIntrin:
    case kTvmTuple: break;
  }
  throw CompileError(kUnsupported, call.origin, "`T.{}` of {} has no C code", call.op->name,
                     call.dtype.str());
}

}  // namespace tenon::c_backend
