// SPDX-License-Identifier: Apache-2.0
// T.dot4: sums of four products of 8 bits, by the widest instruction that is exact.
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsAArch64.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "tenon/backend/llvm/codegen.h"

namespace tenon::llvm_backend {

namespace I = llvm::Intrinsic;

// The instruction that adds products of bytes, the first unsigned and the second signed, to a vector.
static I::ID bytes_of(const Instructions& has, int lanes) {
  if (lanes == 16 && has.bytes_512) return I::x86_avx512_vpdpbusd_512;
  if (lanes == 8 && has.bytes_256) return I::x86_avx512_vpdpbusd_256;
  if (lanes == 4 && has.bytes_256) return I::x86_avx512_vpdpbusd_128;
  return I::not_intrinsic;
}

// The instruction that sums products of neighbouring integers of 16 bits.
static I::ID pairs_of(const Instructions& has, int lanes) {
  if (lanes == 16 && has.pairs_512) return I::x86_avx512_pmaddw_d_512;
  if (lanes == 8 && has.pairs_256) return I::x86_avx2_pmadd_wd;
  if (lanes == 4) return I::x86_sse2_pmadd_wd;
  return I::not_intrinsic;
}

// Bytes 0 and 2 of each word, or 1 and 3, as integers of 16 bits.
static llvm::Value* every_other(llvm::IRBuilder<>& b, llvm::Value* word, bool odd, bool is_signed) {
  auto* words = llvm::cast<llvm::FixedVectorType>(word->getType());
  auto* halves = llvm::FixedVectorType::get(b.getInt16Ty(), 2 * words->getNumElements());
  llvm::Value* x = b.CreateBitCast(word, halves);
  if (odd) return is_signed ? b.CreateAShr(x, 8) : b.CreateLShr(x, 8);
  return is_signed ? b.CreateAShr(b.CreateShl(x, 8), 8)
                   : b.CreateAnd(x, llvm::ConstantInt::get(halves, 255));
}

static llvm::Value* byte_of(llvm::IRBuilder<>& b, llvm::Value* word, uint64_t i, bool is_signed) {
  if (is_signed) return b.CreateAShr(b.CreateShl(word, 24 - 8 * i), 24);
  return b.CreateAnd(b.CreateLShr(word, 8 * i), 255);
}

llvm::Value* FunctionCodegen::dot_product(const Call& call, llvm::Value* sum) {
  const Expr left = call.arg(0), right = call.arg(1);
  const bool a_signed = left->dtype.is_int(), b_signed = right->dtype.is_int();
  const int lanes = call.dtype.lanes;
  llvm::Value* a = value(left);
  llvm::Value* b = value(right);
  if (left->dtype.lanes < lanes) a = splat(a, lanes);
  if (right->dtype.lanes < lanes) b = splat(b, lanes);
  llvm::Type* type = b->getType();
  const auto begin = [&] { return sum ? sum : llvm::Constant::getNullValue(type); };
  const Instructions& has = m_.instructions();
  const bool is_x86 = m_.target().is_x86();
  const auto none = static_cast<I::ID>(I::not_intrinsic);
  if (const I::ID id = is_x86 ? bytes_of(has, lanes) : none; id != none && a_signed != b_signed)
    return b_.CreateIntrinsic(id, {}, {begin(), a_signed ? b : a, a_signed ? a : b});
  const bool arm = a_signed == b_signed ? has.arm_bytes : has.arm_mixed_bytes;
  if (!is_x86 && lanes == 4 && arm) {
    auto* bytes = llvm::FixedVectorType::get(b_.getInt8Ty(), 16);
    I::ID id = a_signed ? I::aarch64_neon_sdot : I::aarch64_neon_udot;
    if (a_signed != b_signed) id = I::aarch64_neon_usdot;
    if (a_signed && !b_signed) std::swap(a, b);
    return b_.CreateIntrinsic(id, {type, bytes},
                              {begin(), b_.CreateBitCast(a, bytes), b_.CreateBitCast(b, bytes)});
  }
  if (const I::ID id = is_x86 ? pairs_of(has, lanes) : none; id != none) {
    for (const bool odd : {false, true}) {
      llvm::Value* products = b_.CreateIntrinsic(
          id, {}, {every_other(b_, a, odd, a_signed), every_other(b_, b, odd, b_signed)});
      sum = sum ? b_.CreateAdd(sum, products) : products;
    }
    return sum;
  }
  for (unsigned i = 0; i < 4; ++i) {
    llvm::Value* product = b_.CreateMul(byte_of(b_, a, i, a_signed), byte_of(b_, b, i, b_signed));
    sum = sum ? b_.CreateAdd(sum, product) : product;
  }
  return sum;
}

}  // namespace tenon::llvm_backend
