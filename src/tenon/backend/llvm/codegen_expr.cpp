// SPDX-License-Identifier: Apache-2.0
// Generates LLVM IR for scalar and vector expressions.
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <cmath>

#include "tenon/backend/limits.h"
#include "tenon/backend/llvm/codegen.h"
#include "tenon/runtime/abi.h"
#include "tenon/support/narrow_float.h"
#include "tenon/tir/analysis/lane_lookup.h"

namespace tenon::llvm_backend {

// The type in which values of `t` are computed with: 16-bit floats compute as float.
static DType compute_dtype(DType t) { return is_small_float(t) ? kFloat32.with_lanes(t.lanes) : t; }

llvm::Value* FunctionCodegen::value(const Expr& expr) {
  const bool leaf = expr.as<Var>() || expr.as<IntImm>() || expr.as<FloatImm>();
  if (leaf) return generate(expr);
  const auto it = memo_.find(expr.get());
  if (it != memo_.end()) return it->second.second;
  llvm::Value* result = generate(expr);
  memo_.emplace(expr.get(), std::pair(expr, result));
  return result;
}

llvm::Value* FunctionCodegen::splat(llvm::Value* value, int lanes) {
  return lanes == 1 ? value : block_values_.splat(value, lanes, b_);
}

// Whether a float32 that is held between constants is rounded to an int32, which holds them.
static bool is_nearest_integer(const Expr& expr) {
  const Expr& from = expr.to<Cast>().value;
  const auto* call = from.as<Call>();
  if (!call || !(call->is(IntrinsicId::kRound) || call->is(IntrinsicId::kNearbyint)) ||
      expr->dtype.element() != kInt32 || from->dtype.element() != kFloat32)
    return false;
  const auto bound = [](const Binary& op) {
    const auto* many = op.rhs.as<Broadcast>();
    const auto number = as_float(many ? many->value : op.rhs);
    return number && std::abs(*number) <= 0x1p30;
  };
  const auto* least = call->arg(0).as<Binary>();
  const auto* most = least && least->op == BinaryOp::kMin ? least->lhs.as<Binary>() : nullptr;
  return most && most->op == BinaryOp::kMax && bound(*least) && bound(*most);
}

// A float for each lane, by its lowest four bits. Null where there is no instruction.
llvm::Value* FunctionCodegen::look_up(const Expr& expr) {
  if (!m_.instructions().floats_512 || expr->dtype != kFloat32.with_lanes(16)) return nullptr;
  const auto lookup = tir::lane_lookup(expr);
  if (!lookup) return nullptr;
  std::vector<llvm::Constant*> floats;
  for (const double number : lookup->floats)
    floats.push_back(llvm::ConstantFP::get(b_.getFloatTy(), number));
  return b_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_permvar_sf_512, {},
                            {llvm::ConstantVector::get(floats), value(lookup->index)});
}

llvm::Value* FunctionCodegen::generate(const Expr& expr) {
  if (llvm::Value* looked_up = look_up(expr)) return looked_up;
  const DType dtype = expr->dtype;
  switch (kind_of(expr)) {
    case ExprKind::kIntImm:
      return llvm::ConstantInt::get(m_.register_type(dtype, expr->origin),
                                    static_cast<uint64_t>(expr.to<IntImm>().value), dtype.is_int());
    case ExprKind::kFloatImm: {
      const double number = expr.to<FloatImm>().value;
      if (dtype.is_minifloat())
        return llvm::ConstantInt::get(m_.register_type(dtype, expr->origin),
                                      narrow_float_bits(dtype, number));
      if (is_small_float(dtype))
        return narrow(llvm::ConstantFP::get(b_.getFloatTy(), number), dtype);
      return llvm::ConstantFP::get(m_.register_type(dtype, expr->origin), number);
    }
    case ExprKind::kStringImm: return m_.text(expr.to<StringImm>().value);
    case ExprKind::kVar: {
      const auto it = vars_.find(expr.get());
      if (it == vars_.end())
        throw CompileError(kUndefined, expr->origin,
                           "variable `{}` is used where it is not defined", expr.to<Var>().name);
      return it->second;
    }
    case ExprKind::kCast: {
      const Expr& from = expr.to<Cast>().value;
      if (is_nearest_integer(expr)) return nearest_integer(value(from.as<Call>()->arg(0)));
      return convert(value(from), from->dtype, dtype, expr->origin);
    }
    case ExprKind::kBinary: return generate_binary(expr.to<Binary>());
    case ExprKind::kNot: return b_.CreateNot(value(expr.to<Not>().value));
    case ExprKind::kSelect: {
      const auto& node = expr.to<Select>();
      llvm::Value* condition = value(node.condition);
      if (dtype.is_vector() && !condition->getType()->isVectorTy())
        condition = splat(condition, dtype.lanes);
      llvm::Value* a = value(node.true_value);
      return b_.CreateSelect(condition, a, value(node.false_value));
    }
    case ExprKind::kRamp: return generate_ramp(expr.to<Ramp>());
    case ExprKind::kBroadcast: {
      const auto& node = expr.to<Broadcast>();
      return splat(value(node.value), static_cast<int>(node.lanes));
    }
    case ExprKind::kShuffle: return generate_shuffle(expr.to<Shuffle>());
    case ExprKind::kLet: {
      const auto& node = expr.to<Let>();
      bind(*node.var, value(node.value));
      if (signs_.is_nonnegative(node.value)) signs_.add_nonnegative(node.var.get());
      return value(node.body);
    }
    case ExprKind::kBufferLoad: return load(expr.to<tir::BufferLoad>(), nullptr, nullptr);
    case ExprKind::kCall: return generate_call(expr.to<Call>());
    case ExprKind::kGlobalVar: break;
  }
  throw CompileError(kUnsupported, expr->origin, "expression `{}` has no native code", str(expr));
}

llvm::Value* FunctionCodegen::generate_ramp(const Ramp& node) {
  llvm::Value* base = value(node.base);
  const int lanes = static_cast<int>(node.lanes);
  std::vector<llvm::Constant*> steps;
  for (int i = 0; i < lanes; ++i)
    steps.push_back(llvm::ConstantInt::get(base->getType(), static_cast<uint64_t>(i)));
  llvm::Value* step =
      b_.CreateMul(llvm::ConstantVector::get(steps), splat(value(node.stride), lanes));
  return b_.CreateAdd(splat(base, lanes), step);
}

// All vectors laid end to end, then the picked lanes.
llvm::Value* FunctionCodegen::generate_shuffle(const Shuffle& node) {
  llvm::Value* joined = nullptr;
  int width = 0;
  for (const Expr& vector : node.vectors) {
    llvm::Value* next = value(vector);
    const int lanes = vector->dtype.lanes;
    if (lanes == 1) {
      auto* type = llvm::FixedVectorType::get(next->getType(), 1);
      next = b_.CreateInsertElement(llvm::PoisonValue::get(type), next, uint64_t{0});
    }
    if (!joined) {
      joined = next;
      width = lanes;
      continue;
    }
    const int total = width + lanes, wide = std::max(width, lanes);
    const auto widened = [&](llvm::Value* v, int n) {
      std::vector<int> mask(static_cast<size_t>(wide), -1);
      for (int i = 0; i < n; ++i) mask[static_cast<size_t>(i)] = i;
      return n == wide ? v : b_.CreateShuffleVector(v, mask);
    };
    std::vector<int> mask;
    for (int i = 0; i < total; ++i) mask.push_back(i < width ? i : wide + i - width);
    joined = b_.CreateShuffleVector(widened(joined, width), widened(next, lanes), mask);
    width = total;
  }
  if (node.lanes.size() == 1)
    return b_.CreateExtractElement(joined, static_cast<uint64_t>(node.lanes[0]));
  std::vector<int> mask(node.lanes.begin(), node.lanes.end());
  return b_.CreateShuffleVector(joined, mask);
}

// ---- conversions --------------------------------------------------------------------------------

llvm::Value* FunctionCodegen::widen(llvm::Value* value, DType from) {
  llvm::Type* f32 = m_.register_type(kFloat32.with_lanes(from.lanes), {});
  llvm::Type* i32 = m_.register_type(kInt32.with_lanes(from.lanes), {});
  if (from.code == DType::Code::kBFloat)
    return b_.CreateBitCast(b_.CreateShl(b_.CreateZExt(value, i32), 16), f32);
  if (!m_.instructions().halves) {
    // The exponent's bias changes by a product, which makes denormals normal; infinities and NaN
    // keep all ones in it.
    const auto bits = [&](uint32_t value) { return llvm::ConstantInt::get(i32, value); };
    llvm::Value* wide = b_.CreateZExt(value, i32);
    llvm::Value* magnitude = b_.CreateShl(b_.CreateAnd(wide, bits(0x7fff)), 13);
    llvm::Value* scaled = b_.CreateBitCast(
        b_.CreateFMul(b_.CreateBitCast(magnitude, f32), llvm::ConstantFP::get(f32, 0x1p112)), i32);
    llvm::Value* special = b_.CreateICmpUGE(magnitude, bits(0x0f800000));
    llvm::Value* rest = b_.CreateSelect(special, b_.CreateOr(magnitude, bits(0x7f800000)), scaled);
    llvm::Value* sign = b_.CreateShl(b_.CreateAnd(wide, bits(0x8000)), 16);
    return b_.CreateBitCast(b_.CreateOr(rest, sign), f32);
  }
  llvm::Type* half = b_.getHalfTy();
  if (from.is_vector()) half = llvm::FixedVectorType::get(half, from.lanes);
  // LLVM would take a comparison of the wide value with a constant for one of halves, which is done
  // element by element where the processor has none: a fence keeps it from looking through.
  return b_.CreateArithmeticFence(b_.CreateFPExt(b_.CreateBitCast(value, half), f32), f32);
}

llvm::Value* FunctionCodegen::narrow(llvm::Value* value, DType to) {
  llvm::Type* i16 = m_.register_type(kInt16.with_lanes(to.lanes), {});
  if (to.code != DType::Code::kBFloat && !m_.instructions().halves) {
    // Normal results round in integers, to even; denormal ones by an addition whose last place is
    // theirs.
    llvm::Type* i32 = m_.register_type(kInt32.with_lanes(to.lanes), {});
    const auto bits = [&](uint32_t number) { return llvm::ConstantInt::get(i32, number); };
    llvm::Value* all = b_.CreateBitCast(value, i32);
    llvm::Value* magnitude = b_.CreateAnd(all, bits(0x7fffffff));
    llvm::Value* odd = b_.CreateAnd(b_.CreateLShr(magnitude, 13), bits(1));
    llvm::Value* normal =
        b_.CreateLShr(b_.CreateAdd(b_.CreateAdd(magnitude, bits(0xc8000fff)), odd), 13);
    llvm::Value* shifted = b_.CreateFAdd(b_.CreateBitCast(magnitude, value->getType()),
                                         llvm::ConstantFP::get(value->getType(), 0.5));
    llvm::Value* denormal = b_.CreateSub(b_.CreateBitCast(shifted, i32), bits(0x3f000000));
    llvm::Value* finite =
        b_.CreateSelect(b_.CreateICmpULT(magnitude, bits(0x38800000)), denormal, normal);
    llvm::Value* special =
        b_.CreateSelect(b_.CreateICmpUGT(magnitude, bits(0x7f800000)), bits(0x7e00), bits(0x7c00));
    llvm::Value* result =
        b_.CreateSelect(b_.CreateICmpUGE(magnitude, bits(0x47800000)), special, finite);
    llvm::Value* sign = b_.CreateAnd(b_.CreateLShr(all, 16), bits(0x8000));
    return b_.CreateTrunc(b_.CreateOr(result, sign), i16);
  }
  if (to.code != DType::Code::kBFloat) {
    llvm::Type* half = b_.getHalfTy();
    if (to.is_vector()) half = llvm::FixedVectorType::get(half, to.lanes);
    return b_.CreateBitCast(b_.CreateFPTrunc(value, half), i16);
  }
  // Round to nearest, ties to even, in integers: the processor's own instruction drops denormals.
  llvm::Type* i32 = m_.register_type(kInt32.with_lanes(to.lanes), {});
  llvm::Value* bits = b_.CreateBitCast(value, i32);
  llvm::Value* high = b_.CreateLShr(bits, 16);
  llvm::Value* odd = b_.CreateAnd(high, llvm::ConstantInt::get(i32, 1));
  llvm::Value* rounded =
      b_.CreateLShr(b_.CreateAdd(bits, b_.CreateAdd(odd, llvm::ConstantInt::get(i32, 0x7fff))), 16);
  llvm::Value* quiet = b_.CreateOr(high, llvm::ConstantInt::get(i32, 0x40));
  llvm::Value* result = b_.CreateSelect(b_.CreateFCmpUNO(value, value), quiet, rounded);
  return b_.CreateTrunc(result, i16);
}

// Towards zero, saturating; NaN gives 0.
llvm::Value* FunctionCodegen::saturated(llvm::Value* value, DType to, llvm::Type* type) {
  if (!to.is_vector() || to.bits < 8) {
    const auto id = to.is_uint() ? llvm::Intrinsic::fptoui_sat : llvm::Intrinsic::fptosi_sat;
    return b_.CreateIntrinsic(id, {type, value->getType()}, {value});
  }
  // LLVM 19 takes the intrinsic apart, lane by lane. In vectors: what is too large, and NaN, is 0 for
  // the conversion, what is too small is the least.
  const int magnitude = to.is_uint() ? to.bits : to.bits - 1;
  llvm::Value* beyond = llvm::ConstantFP::get(value->getType(), std::ldexp(1.0, magnitude));
  llvm::Value* least =
      llvm::ConstantFP::get(value->getType(), to.is_uint() ? 0 : -std::ldexp(1.0, magnitude));
  llvm::Value* zero = llvm::Constant::getNullValue(value->getType());
  llvm::Value* inside = b_.CreateSelect(b_.CreateFCmpOLT(value, beyond), value, zero);
  inside = b_.CreateSelect(b_.CreateFCmpOGT(inside, least), inside, least);
  llvm::Value* whole = nullptr;
  if (to.bits < 32)
    whole = b_.CreateTrunc(
        b_.CreateFPToSI(inside, m_.register_type(kInt32.with_lanes(to.lanes), {})), type);
  else
    whole = to.is_uint() ? b_.CreateFPToUI(inside, type) : b_.CreateFPToSI(inside, type);
  const auto bits = static_cast<unsigned>(to.bits);
  const llvm::APInt most =
      to.is_uint() ? llvm::APInt::getMaxValue(bits) : llvm::APInt::getSignedMaxValue(bits);
  return b_.CreateSelect(b_.CreateFCmpOGE(value, beyond), llvm::ConstantInt::get(type, most),
                         whole);
}

llvm::Value* FunctionCodegen::convert(llvm::Value* value, DType from, DType to,
                                      const Origin& origin) {
  if (from == to) return value;
  backend::check_wide(from, origin);
  backend::check_wide(to, origin);
  if (is_small_float(from)) {
    if (to.element() == from.element()) return value;
    return convert(widen(value, from), kFloat32.with_lanes(from.lanes), to, origin);
  }
  if (is_small_float(to)) {
    const DType f32 = kFloat32.with_lanes(to.lanes);
    return narrow(convert(value, from, f32, origin), to);
  }
  llvm::Type* type = m_.register_type(to, origin);
  if (to.is_bool()) {
    llvm::Value* zero = llvm::Constant::getNullValue(value->getType());
    return from.is_float() ? b_.CreateFCmpUNE(value, zero) : b_.CreateICmpNE(value, zero);
  }
  const bool from_unsigned = from.is_uint() || from.is_bool();
  if (to.is_float() && !from.is_handle()) {
    if (from.is_float()) return b_.CreateFPCast(value, type);
    return from_unsigned ? b_.CreateUIToFP(value, type) : b_.CreateSIToFP(value, type);
  }
  if (to.is_integer()) {
    if (from.is_float()) return saturated(value, to, type);
    if (from.is_handle()) return b_.CreatePtrToInt(value, type);
    return from_unsigned ? b_.CreateZExtOrTrunc(value, type) : b_.CreateSExtOrTrunc(value, type);
  }
  if (to.is_handle() && from.is_integer()) return b_.CreateIntToPtr(value, type);
  if (to.is_handle() && from.is_handle()) return value;
  throw CompileError(kUnsupported, origin, "a cast from {} to {} has no native code", from.str(),
                     to.str());
}

// To even, as the processor rounds where nobody tells it otherwise; 0 of NaN.
llvm::Value* FunctionCodegen::nearest_integer(llvm::Value* x) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  const unsigned lanes = vector ? vector->getNumElements() : 1;
  llvm::Type* type = b_.getInt32Ty();
  if (vector) type = llvm::FixedVectorType::get(type, lanes);
  llvm::Value* zero = llvm::Constant::getNullValue(type);
  llvm::Value* ordered = b_.CreateFCmpORD(x, x);
  const Instructions& has = m_.instructions();
  if (has.floats_512 && lanes == 16)
    return b_.CreateIntrinsic(
        llvm::Intrinsic::x86_avx512_mask_cvtps2dq_512, {},
        {x, zero, b_.CreateBitCast(ordered, b_.getInt16Ty()), b_.getInt32(4)});
  llvm::Value* whole = nullptr;
  if (has.floats_256 && lanes == 8)
    whole = b_.CreateIntrinsic(llvm::Intrinsic::x86_avx_cvt_ps2dq_256, {}, {x});
  else if (m_.target().is_x86() && lanes == 4)
    whole = b_.CreateIntrinsic(llvm::Intrinsic::x86_sse2_cvtps2dq, {}, {x});
  else
    whole =
        b_.CreateFreeze(b_.CreateFPToSI(b_.CreateUnaryIntrinsic(llvm::Intrinsic::rint, x), type));
  return b_.CreateSelect(ordered, whole, zero);
}

// ---- arithmetic ---------------------------------------------------------------------------------

// x86's min and max give the second operand where either is NaN (or both are zeros): `a > b ? a :
// b`. So an operand that cannot be NaN goes first and the instruction alone is exact; else the
// first operand's NaN is put back by one blend.
llvm::Value* FunctionCodegen::min_max(bool is_max, llvm::Value* a, llvm::Value* b, const Expr& lhs,
                                      const Expr& rhs) {
  const auto pick = [&](llvm::Value* first, llvm::Value* second) {
    llvm::Value* keep = is_max ? b_.CreateFCmpOGT(first, second) : b_.CreateFCmpOLT(first, second);
    return b_.CreateSelect(keep, first, second);
  };
  if (backend::never_nan(lhs)) return pick(a, b);
  if (backend::never_nan(rhs)) return pick(b, a);
  // Not `isnan(a) ? a : pick(a, b)`: LLVM 19 joins two selects of one value by `or`, and of the or
  // of `isnan(|x|)` and `|x| > 0` makes `!(x <= 0)`.
  return b_.CreateSelect(b_.CreateFCmpORD(a, a), pick(a, b), a);
}

static const ExprNode* divisor_of(const Binary& node) { return node.rhs.get(); }

llvm::Value* FunctionCodegen::integer_division(BinaryOp op, DType dtype, llvm::Value* a,
                                               llvm::Value* b, const Binary& node) {
  const bool quotient = op == BinaryOp::kDiv || op == BinaryOp::kFloorDiv;
  const Expr divisor = ref_to(divisor_of(node));
  const auto constant = as_int(divisor);
  // What is written so was refused before; simplification finds it in code that does not run, under
  // a condition that holds for dimensions of 0 only.
  if (constant == 0) {
    fail_unless(b_.getFalse(), TENON_ERROR_VALUE, where(node.origin), "integer division by zero",
                nullptr, nullptr);
    return llvm::Constant::getNullValue(a->getType());
  }
  if (!constant && !signs_.is_positive(divisor)) {
    llvm::Value* zero = b_.CreateICmpEQ(b, llvm::Constant::getNullValue(b->getType()));
    if (dtype.is_vector()) zero = b_.CreateOrReduce(zero);
    fail_unless(b_.CreateNot(zero), TENON_ERROR_VALUE, where(node.origin),
                "integer division by zero", nullptr, nullptr);
  }
  const bool plain =
      dtype.is_uint() || (signs_.is_nonnegative(node.lhs) && signs_.is_nonnegative(divisor));
  if (plain) return quotient ? b_.CreateUDiv(a, b) : b_.CreateURem(a, b);
  const bool floors = op == BinaryOp::kFloorDiv || op == BinaryOp::kFloorMod;
  if (floors && constant && *constant > 0 && (*constant & (*constant - 1)) == 0) {
    const uint64_t mask = static_cast<uint64_t>(*constant) - 1;
    if (!quotient) return b_.CreateAnd(a, llvm::ConstantInt::get(a->getType(), mask));
    return b_.CreateAShr(a, static_cast<uint64_t>(__builtin_ctzll(mask + 1)));
  }
  // The one quotient that overflows, least value / -1, wraps; the processor would trap.
  llvm::Value* minus_one = llvm::Constant::getAllOnesValue(b->getType());
  llvm::Value* one = llvm::ConstantInt::get(b->getType(), 1);
  llvm::Value* negates = nullptr;
  llvm::Value* safe = b;
  if (constant == -1) {
    llvm::Value* zero = llvm::Constant::getNullValue(a->getType());
    return quotient ? b_.CreateSub(zero, a) : zero;
  }
  if (!constant && !signs_.is_nonnegative(divisor)) {
    negates = b_.CreateICmpEQ(b, minus_one);
    safe = b_.CreateSelect(negates, one, b);
  }
  llvm::Value* q = b_.CreateSDiv(a, safe);
  llvm::Value* r = b_.CreateSub(a, b_.CreateMul(q, safe));
  llvm::Value* zero = llvm::Constant::getNullValue(a->getType());
  llvm::Value* result = nullptr;
  if (!floors) {
    result = quotient ? q : r;
  } else {
    llvm::Value* below =
        b_.CreateAnd(b_.CreateICmpNE(r, zero), b_.CreateICmpSLT(b_.CreateXor(r, safe), zero));
    result = quotient ? b_.CreateAdd(q, b_.CreateSExt(below, q->getType()))
                      : b_.CreateAdd(r, b_.CreateSelect(below, safe, zero));
  }
  if (negates) result = b_.CreateSelect(negates, quotient ? b_.CreateNeg(a) : zero, result);
  return result;
}

llvm::Value* FunctionCodegen::arithmetic(BinaryOp op, DType dtype, llvm::Value* a, llvm::Value* b,
                                         const Binary& node) {
  if (dtype.is_float()) {
    switch (op) {
      case BinaryOp::kAdd: return b_.CreateFAdd(a, b);
      case BinaryOp::kSub: return b_.CreateFSub(a, b);
      case BinaryOp::kMul: return b_.CreateFMul(a, b);
      case BinaryOp::kDiv: return b_.CreateFDiv(a, b);
      case BinaryOp::kFloorDiv:
        return b_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, b_.CreateFDiv(a, b));
      case BinaryOp::kMod:
      case BinaryOp::kFloorMod:
        throw CompileError(kUnsupported, node.origin,
                           "remainders of {} have no native code before LowerIntrinsics",
                           dtype.str());
      case BinaryOp::kMin: return min_max(false, a, b, node.lhs, node.rhs);
      case BinaryOp::kMax: return min_max(true, a, b, node.lhs, node.rhs);
      case BinaryOp::kEQ: return b_.CreateFCmpOEQ(a, b);
      case BinaryOp::kNE: return b_.CreateFCmpUNE(a, b);
      case BinaryOp::kLT: return b_.CreateFCmpOLT(a, b);
      case BinaryOp::kLE: return b_.CreateFCmpOLE(a, b);
      case BinaryOp::kGT: return b_.CreateFCmpOGT(a, b);
      case BinaryOp::kGE: return b_.CreateFCmpOGE(a, b);
      default: break;
    }
    unreachable("a logical operation on floats");
  }
  const bool is_unsigned = dtype.is_uint() || dtype.is_bool();
  const bool exact = index_arithmetic_ && !is_unsigned;
  switch (op) {
    case BinaryOp::kAdd: return b_.CreateAdd(a, b, "", false, exact);
    case BinaryOp::kSub: return b_.CreateSub(a, b, "", false, exact);
    case BinaryOp::kMul: return b_.CreateMul(a, b, "", false, exact);
    case BinaryOp::kDiv:
    case BinaryOp::kMod:
    case BinaryOp::kFloorDiv:
    case BinaryOp::kFloorMod: return integer_division(op, dtype, a, b, node);
    case BinaryOp::kMin:
      return b_.CreateBinaryIntrinsic(is_unsigned ? llvm::Intrinsic::umin : llvm::Intrinsic::smin,
                                      a, b);
    case BinaryOp::kMax:
      return b_.CreateBinaryIntrinsic(is_unsigned ? llvm::Intrinsic::umax : llvm::Intrinsic::smax,
                                      a, b);
    case BinaryOp::kEQ: return b_.CreateICmpEQ(a, b);
    case BinaryOp::kNE: return b_.CreateICmpNE(a, b);
    case BinaryOp::kLT: return is_unsigned ? b_.CreateICmpULT(a, b) : b_.CreateICmpSLT(a, b);
    case BinaryOp::kLE: return is_unsigned ? b_.CreateICmpULE(a, b) : b_.CreateICmpSLE(a, b);
    case BinaryOp::kGT: return is_unsigned ? b_.CreateICmpUGT(a, b) : b_.CreateICmpSGT(a, b);
    case BinaryOp::kGE: return is_unsigned ? b_.CreateICmpUGE(a, b) : b_.CreateICmpSGE(a, b);
    case BinaryOp::kAnd: return b_.CreateAnd(a, b);
    case BinaryOp::kOr: return b_.CreateOr(a, b);
  }
  unreachable("a binary operation");
}

llvm::Value* FunctionCodegen::generate_binary(const Binary& node) {
  const DType dtype = node.lhs->dtype;
  backend::check_wide(dtype, node.origin);
  // `and`, `or` stop at the first operand that decides, as the second may be guarded by it.
  if (is_logical(node.op) && dtype.is_scalar() && backend::needs_guard(node.rhs)) {
    const bool is_and = node.op == BinaryOp::kAnd;
    llvm::Value* first = value(node.lhs);
    llvm::BasicBlock* from = b_.GetInsertBlock();
    llvm::BasicBlock* more = block("logic.rhs");
    llvm::BasicBlock* end = block("logic.end");
    b_.CreateCondBr(first, is_and ? more : end, is_and ? end : more);
    b_.SetInsertPoint(more);
    const auto saved = memo_;
    llvm::Value* second = value(node.rhs);
    memo_ = saved;
    llvm::BasicBlock* second_from = b_.GetInsertBlock();
    b_.CreateBr(end);
    b_.SetInsertPoint(end);
    llvm::PHINode* phi = b_.CreatePHI(b_.getInt1Ty(), 2);
    phi->addIncoming(b_.getInt1(!is_and), from);
    phi->addIncoming(second, second_from);
    return phi;
  }
  // A sum that begins with another is one instruction.
  const auto dot = [&](const Expr& x) {
    const auto* call = x.as<Call>();
    return node.op == BinaryOp::kAdd && call && call->is(IntrinsicId::kDot4) ? call : nullptr;
  };
  if (const Call* call = dot(node.rhs)) return dot_product(*call, value(node.lhs));
  if (const Call* call = dot(node.lhs)) return dot_product(*call, value(node.rhs));
  llvm::Value* a = value(node.lhs);
  llvm::Value* b = value(node.rhs);
  if (!is_small_float(dtype)) return arithmetic(node.op, dtype, a, b, node);
  llvm::Value* result =
      arithmetic(node.op, compute_dtype(dtype), widen(a, dtype), widen(b, dtype), node);
  return is_comparison(node.op) ? result : narrow(result, dtype);
}

}  // namespace tenon::llvm_backend
