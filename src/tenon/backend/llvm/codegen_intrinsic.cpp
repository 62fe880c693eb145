// SPDX-License-Identifier: Apache-2.0
// Intrinsics: what `T.name(...)` becomes in LLVM.
#include <llvm/IR/Intrinsics.h>

#include <cstddef>

#include "tenon/backend/limits.h"
#include "tenon/backend/llvm/codegen.h"
#include "tenon/runtime/abi.h"
#include "tenon/tir/analysis/element_places.h"

namespace tenon::llvm_backend {

namespace I = llvm::Intrinsic;

llvm::Value* FunctionCodegen::unary_float(llvm::Intrinsic::ID id, const Call& call) {
  llvm::Value* x = value(call.arg(0));
  if (!is_small_float(call.dtype)) return b_.CreateUnaryIntrinsic(id, x);
  return narrow(b_.CreateUnaryIntrinsic(id, widen(x, call.dtype)), call.dtype);
}

llvm::Value* FunctionCodegen::generate_if(const Call& call) {
  const Expr condition = call.arg(0);
  llvm::Value* decision = value(condition);
  if (condition->dtype.is_vector() ||
      (!backend::needs_guard(call.arg(1)) && !backend::needs_guard(call.arg(2)))) {
    if (condition->dtype.is_vector() &&
        (backend::needs_guard(call.arg(1)) || backend::needs_guard(call.arg(2))))
      throw CompileError(kUnsupported, call.origin,
                         "`T.if_then_else` guards reads by a condition of {} lanes",
                         condition->dtype.lanes);
    llvm::Value* a = value(call.arg(1));
    return b_.CreateSelect(decision, a, value(call.arg(2)));
  }
  shared_pointers_.keep_those_of(b_.GetInsertBlock());
  for (size_t i : {1, 2}) make_pointers(call.arg(i));
  llvm::BasicBlock* yes = block("then");
  llvm::BasicBlock* no = block("else");
  llvm::BasicBlock* end = block("endif");
  b_.CreateCondBr(decision, yes, no);
  const auto saved = memo_;  // values of one branch do not exist in the other
  const auto pointers = shared_pointers_;
  b_.SetInsertPoint(yes);
  shared_pointers_.enter(yes);
  llvm::Value* a = value(call.arg(1));
  yes = b_.GetInsertBlock();
  b_.CreateBr(end);
  memo_ = saved;
  shared_pointers_ = pointers;
  b_.SetInsertPoint(no);
  shared_pointers_.enter(no);
  llvm::Value* b = value(call.arg(2));
  no = b_.GetInsertBlock();
  b_.CreateBr(end);
  memo_ = saved;
  shared_pointers_ = pointers;
  b_.SetInsertPoint(end);
  shared_pointers_.enter(end);
  llvm::PHINode* phi = b_.CreatePHI(a->getType(), 2);
  phi->addIncoming(a, yes);
  phi->addIncoming(b, no);
  return phi;
}

llvm::Value* FunctionCodegen::generate_extern(const Call& call) {
  const auto* symbol = call.args.empty() ? nullptr : call.arg(0).as<StringImm>();
  if (!symbol)
    throw CompileError(kBadArgument, call.origin, "`T.{}` without a function's name",
                       call.op->name);
  std::vector<llvm::Value*> args;
  std::vector<llvm::Type*> types;
  // Functions that take a format have varying arguments, which C promotes.
  const bool is_format = symbol->value.ends_with("printf");
  for (size_t i = 1; i < call.args.size(); ++i) {
    const Expr arg = call.arg(i);
    const auto* text = arg.as<StringImm>();
    llvm::Value* passed = text ? m_.text(text->value) : value(arg);
    if (is_format && arg->dtype == kFloat32) passed = convert(passed, kFloat32, kFloat64, {});
    if (arg->dtype.is_bool()) passed = b_.CreateZExt(passed, b_.getInt8Ty());
    if (is_format && arg->dtype.is_integer() && arg->dtype.bits < 32)
      passed = b_.CreateIntCast(passed, b_.getInt32Ty(), arg->dtype.is_int());
    args.push_back(passed);
    types.push_back(args.back()->getType());
  }
  llvm::Type* result =
      call.dtype.is_void() ? b_.getVoidTy() : m_.register_type(call.dtype, call.origin);
  auto* type = llvm::FunctionType::get(result, types, is_format);
  llvm::Value* returned = b_.CreateCall(m_.module().getOrInsertFunction(symbol->value, type), args);
  if (!call.is(IntrinsicId::kCallPureExtern))
    memo_.clear();  // what was read before may have changed
  return returned;
}

llvm::Value* FunctionCodegen::checked_index(const Call& call) {
  llvm::Value* index = value(call.arg(0));
  llvm::Value* extent = value(call.arg(1));
  const auto* message = call.arg(2).as<StringImm>();
  if (call.dtype.is_vector() || !message)
    throw CompileError(kUnsupported, call.origin,
                       "`T.check_index` takes a scalar, its extent and a constant text");
  // One comparison of unsigned numbers: an extent is not negative.
  llvm::Type* i64 = b_.getInt64Ty();
  llvm::Value* wide = call.dtype.is_uint() ? b_.CreateZExt(index, i64) : b_.CreateSExt(index, i64);
  llvm::Value* bound = b_.CreateSExt(extent, i64);
  fail_unless(b_.CreateICmpULT(wide, bound), TENON_ERROR_INDEX, where(call.origin), message->value,
              wide, bound);
  return index;
}

// An integer is whole already.
llvm::Value* FunctionCodegen::rounding(llvm::Intrinsic::ID id, const Call& call) {
  return call.dtype.is_float() ? unary_float(id, call) : value(call.arg(0));
}

llvm::Value* FunctionCodegen::absolute(const Call& call) {
  if (call.dtype.is_float()) return unary_float(I::fabs, call);
  if (call.dtype.is_uint() && call.is(IntrinsicId::kAbs)) return value(call.arg(0));
  return b_.CreateBinaryIntrinsic(I::abs, value(call.arg(0)), b_.getFalse());
}

llvm::Value* FunctionCodegen::inverse_root(const Call& call) {
  const bool small = is_small_float(call.dtype);
  llvm::Value* x = value(call.arg(0));
  if (small) x = widen(x, call.dtype);
  x = b_.CreateFDiv(llvm::ConstantFP::get(x->getType(), 1.0), b_.CreateUnaryIntrinsic(I::sqrt, x));
  return small ? narrow(x, call.dtype) : x;
}

llvm::Value* FunctionCodegen::nary_float(llvm::Intrinsic::ID id, const Call& call) {
  const bool small = is_small_float(call.dtype);
  std::vector<llvm::Value*> args;
  for (size_t i = 0; i < call.args.size(); ++i) {
    llvm::Value* x = value(call.arg(i));
    args.push_back(small ? widen(x, call.dtype) : x);
  }
  llvm::Value* result = b_.CreateIntrinsic(id, {args[0]->getType()}, args);
  return small ? narrow(result, call.dtype) : result;
}

// isnan, isinf, isfinite.
llvm::Value* FunctionCodegen::classify(const Call& call) {
  const DType from = call.arg(0)->dtype;
  llvm::Value* x = value(call.arg(0));
  if (!from.is_float())
    return llvm::ConstantInt::get(m_.register_type(call.dtype, {}),
                                  call.is(IntrinsicId::kIsfinite));
  if (is_small_float(from)) x = widen(x, from);
  if (call.is(IntrinsicId::kIsnan)) return b_.CreateFCmpUNO(x, x);
  llvm::Value* magnitude = b_.CreateUnaryIntrinsic(I::fabs, x);
  llvm::Value* infinity = llvm::ConstantFP::getInfinity(x->getType());
  return call.is(IntrinsicId::kIsinf) ? b_.CreateFCmpOEQ(magnitude, infinity)
                                      : b_.CreateFCmpOLT(magnitude, infinity);
}

llvm::Value* FunctionCodegen::shift(const Call& call) {
  const DType dtype = call.dtype;
  const bool left = call.is(IntrinsicId::kShiftLeft);
  llvm::Value* x = value(call.arg(0));
  llvm::Value* n = value(call.arg(1));
  const auto constant = as_int(call.arg(1));
  llvm::Value* width = llvm::ConstantInt::get(n->getType(), dtype.bits);
  llvm::Value* zero = llvm::Constant::getNullValue(x->getType());
  if (!left && dtype.is_int()) {  // beyond the width only the sign is left
    llvm::Value* last = llvm::ConstantInt::get(n->getType(), dtype.bits - 1u);
    return b_.CreateAShr(x, b_.CreateBinaryIntrinsic(I::umin, n, last));
  }
  if (constant && (*constant < 0 || *constant >= dtype.bits)) return zero;
  llvm::Value* shifted = left ? b_.CreateShl(x, n) : b_.CreateLShr(x, n);
  return constant ? shifted : b_.CreateSelect(b_.CreateICmpULT(n, width), shifted, zero);
}

// min_value, max_value, infinity.
llvm::Value* FunctionCodegen::limit(const Call& call) {
  if (call.dtype.is_float()) return value(imm(call.dtype, backend::float_limit(call)));
  return llvm::ConstantInt::getSigned(m_.register_type(call.dtype, call.origin),
                                      backend::integer_limit(call));
}

llvm::Value* FunctionCodegen::thread_count(const Call& call) {
  llvm::Value* at =
      b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), context_, offsetof(TenonContext, threads));
  return b_.CreateIntCast(b_.CreateLoad(b_.getInt32Ty(), at, "threads"),
                          m_.register_type(call.dtype, call.origin), true);
}

void FunctionCodegen::generate_return(const Call& call) {
  if (result_) {
    llvm::Value* returned = value(call.arg(0));
    if (call.arg(0)->dtype != info_.function->result)
      throw CompileError(kDTypeMismatch, call.origin, "`{}` returns {}; its result has dtype {}",
                         info_.name, call.arg(0)->dtype.str(), info_.function->result.str());
    b_.CreateStore(to_memory(returned, info_.function->result), result_);
  }
  b_.CreateRet(b_.getInt32(0));
  b_.SetInsertPoint(block("after_return"));
}

llvm::Value* FunctionCodegen::reinterpret(const Call& call) {
  const DType from = call.arg(0)->dtype, to = call.dtype;
  if (from.is_bool() || to.is_bool() ||
      from.storage().bits * from.lanes != to.storage().bits * to.lanes)
    throw CompileError(kUnsupported, call.origin, "`T.reinterpret` from {} to {}", from.str(),
                       to.str());
  return b_.CreateBitOrPointerCast(value(call.arg(0)), m_.register_type(to, call.origin));
}

static const tir::BufferLoad& element_of(const Call& call) {
  const auto* node = call.args.at(0).as<tir::BufferLoad>();
  if (!node)
    throw CompileError(kBadArgument, call.origin, "argument 1 of `T.{}` is no element of a buffer",
                       call.op->name);
  return *node;
}

llvm::Value* FunctionCodegen::access_pointer(const Call& call) {
  const DType pointed = tir::element_of_access_ptr(call);
  llvm::Value* offset = value(tenon::cast(kInt64, call.arg(2)) * pointed.bytes());
  return b_.CreateGEP(b_.getInt8Ty(), value(call.arg(1)), offset);
}

void FunctionCodegen::generate_prefetch(const Call& call) {
  const tir::BufferLoad& node = element_of(call);
  llvm::Value* pointer = address(*node.buffer, node.indices, call.origin).pointer;
  const auto write = as_int(call.arg(1)), locality = as_int(call.arg(2));
  if (!write || !locality)
    throw CompileError(kBadArgument, call.origin, "`T.prefetch` with a mode that is no constant");
  b_.CreateIntrinsic(
      I::prefetch, {b_.getPtrTy()},
      {pointer, b_.getInt32(*write != 0), b_.getInt32(*locality & 3), b_.getInt32(1)});
}

// vectorlow, vectorhigh.
llvm::Value* FunctionCodegen::half_of_vector(const Call& call) {
  const int lanes = call.arg(0)->dtype.lanes, half = call.dtype.lanes;
  const int first = call.is(IntrinsicId::kVectorlow) ? 0 : lanes - half;
  std::vector<int> mask;
  for (int i = 0; i < half; ++i) mask.push_back(first + i);
  return b_.CreateShuffleVector(value(call.arg(0)), mask);
}

llvm::Value* FunctionCodegen::joined_vectors(const Call& call) {
  std::vector<int> mask;
  for (int i = 0; i < call.dtype.lanes; ++i) mask.push_back(i);
  llvm::Value* low = value(call.arg(0));
  return b_.CreateShuffleVector(low, value(call.arg(1)), mask);
}

llvm::Value* FunctionCodegen::masked_load(const Call& call) {
  llvm::Value* mask = value(call.arg(1));
  return load(element_of(call), mask, value(call.arg(2)));
}

void FunctionCodegen::masked_store(const Call& call) {
  const tir::BufferLoad& node = element_of(call);
  llvm::Value* mask = value(call.arg(1));
  store(*node.buffer, node.indices, value(call.arg(2)), mask, call.origin);
}

llvm::Value* FunctionCodegen::generate_call(const Call& call) {
  if (call.op) return generate_intrinsic(call);
  llvm::Value* result = generate_function_call(*call.callee, call.args, call.origin);
  if (!result)
    throw CompileError(kTypeMismatch, call.origin, "`{}` returns no value", call.callee->name);
  return result;
}

llvm::Value* FunctionCodegen::generate_intrinsic(const Call& call) {
  using enum IntrinsicId;
  const auto arg = [&](size_t i) { return value(call.arg(i)); };
  switch (call.op->id) {
    case kSqrt: return rounding(I::sqrt, call);
    case kFloor: return rounding(I::floor, call);
    case kCeil: return rounding(I::ceil, call);
    case kTrunc: return rounding(I::trunc, call);
    case kRound:
    case kNearbyint: return rounding(I::rint, call);
    case kFabs:
    case kAbs: return absolute(call);
    case kRsqrt: return inverse_root(call);
    case kCopysign: return nary_float(I::copysign, call);
    case kFma: return nary_float(I::fma, call);
    case kIsnan:
    case kIsinf:
    case kIsfinite: return classify(call);
    case kShiftLeft:
    case kShiftRight: return shift(call);
    case kBitwiseAnd: return b_.CreateAnd(arg(0), arg(1));
    case kBitwiseOr: return b_.CreateOr(arg(0), arg(1));
    case kBitwiseXor: return b_.CreateXor(arg(0), arg(1));
    case kBitwiseNot: return b_.CreateNot(arg(0));
    case kPopcount: return b_.CreateUnaryIntrinsic(I::ctpop, arg(0));
    case kClz: return b_.CreateBinaryIntrinsic(I::ctlz, arg(0), b_.getFalse());
    case kDot4: return dot_product(call, nullptr);
    case kMinValue:
    case kMaxValue:
    case kInfinity: return limit(call);
    case kNumThreads: return thread_count(call);
    case kIfThenElse: return generate_if(call);
    case kLikely: return arg(0);
    case kCheckIndex: return checked_index(call);
    case kAssume: return nullptr;
    case kUndef: return llvm::Constant::getNullValue(m_.register_type(call.dtype, call.origin));
    case kRet: generate_return(call); return nullptr;
    case kReinterpret: return reinterpret(call);
    case kAddressOf: {
      const tir::BufferLoad& node = element_of(call);
      return address(*node.buffer, node.indices, call.origin).pointer;
    }
    case kTvmAccessPtr: return access_pointer(call);
    case kPrefetch: generate_prefetch(call); return nullptr;
    case kIsnullptr: return b_.CreateIsNull(arg(0));
    case kVectorlow:
    case kVectorhigh: return half_of_vector(call);
    case kVectorcombine: return joined_vectors(call);
    case kMaskedLoad: return masked_load(call);
    case kMaskedStore: masked_store(call); return nullptr;
    case kCallExtern:
    case kCallPureExtern: return generate_extern(call);
    case kCallPacked:
    case kCallCpacked: return generate_packed(call);
    // LowerIntrinsics replaces elementary functions by arithmetic.
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
  throw CompileError(kUnsupported, call.origin, "`T.{}` of {} has no native code", call.op->name,
                     call.dtype.str());
}

}  // namespace tenon::llvm_backend
