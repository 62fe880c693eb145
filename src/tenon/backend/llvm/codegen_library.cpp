// SPDX-License-Identifier: Apache-2.0
// Generates LLVM IR for calls of library functions with declared signatures.
#include <dlpack/dlpack.h>
#include <llvm/IR/Intrinsics.h>

#include <algorithm>
#include <cstddef>

#include "tenon/backend/dlpack_code.h"
#include "tenon/backend/llvm/codegen.h"
#include "tenon/runtime/abi.h"
#include "tenon/tir/callee.h"

namespace tenon::llvm_backend {

// A DLTensor on the stack, as dlpack.h lays it out for x86-64.
llvm::Value* FunctionCodegen::dl_tensor(const backend::LibraryArgument& argument,
                                        llvm::Value* data) {
  llvm::Type* i64 = b_.getInt64Ty();
  const size_t rank = argument.extents.size();
  const auto numbers = [&](const std::vector<Expr>& exprs, const char* name) -> llvm::Value* {
    if (rank == 0) return llvm::ConstantPointerNull::get(b_.getPtrTy());
    llvm::AllocaInst* memory = stack_memory(llvm::ArrayType::get(i64, rank), 8, name);
    for (size_t d = 0; d < rank; ++d)
      b_.CreateStore(index_value(exprs[d]), b_.CreateConstInBoundsGEP1_64(i64, memory, d));
    return memory;
  };
  llvm::Value* shape = numbers(argument.extents, "dims");
  llvm::Value* strides = numbers(argument.strides, "strides");
  llvm::AllocaInst* tensor =
      stack_memory(llvm::ArrayType::get(b_.getInt8Ty(), sizeof(DLTensor)), 8, "tensor");
  const auto put = [&](size_t offset, llvm::Value* value) {
    b_.CreateStore(value, b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), tensor, offset));
  };
  const DType dtype = argument.dtype;
  put(offsetof(DLTensor, data), data);
  put(offsetof(DLTensor, device), b_.getInt32(kDLCPU));
  put(offsetof(DLTensor, device) + sizeof(int32_t), b_.getInt32(0));
  put(offsetof(DLTensor, ndim), b_.getInt32(static_cast<uint32_t>(rank)));
  put(offsetof(DLTensor, dtype), b_.getInt8(backend::dlpack_code(dtype)));
  put(offsetof(DLTensor, dtype) + 1, b_.getInt8(static_cast<uint8_t>(dtype.bits)));
  put(offsetof(DLTensor, dtype) + 2, b_.getInt16(1));
  put(offsetof(DLTensor, shape), shape);
  put(offsetof(DLTensor, strides), strides);
  put(offsetof(DLTensor, byte_offset), b_.getInt64(0));
  return tensor;
}

llvm::Value* FunctionCodegen::dl_tensor(const tir::BufferRegion& region, const Origin& origin) {
  backend::LibraryArgument tensor;
  tensor.pointer.buffer = region.buffer;
  for (const tir::Range& range : region.region) tensor.pointer.minimum.push_back(range.min);
  tensor.extents = tir::kept_extents(region);
  tensor.strides = tir::kept_strides(region);
  tensor.dtype = region.buffer->dtype;
  return dl_tensor(
      tensor, element_pointer(pointer_of(*region.buffer, origin),
                              offset_of(*region.buffer, tensor.pointer.minimum), *region.buffer));
}

FunctionCodegen::PackedValues FunctionCodegen::packed_values(const std::vector<NodePtr>& items,
                                                             const Origin& origin) {
  llvm::Type *i32 = b_.getInt32Ty(), *i64 = b_.getInt64Ty();
  const size_t room = std::max<size_t>(items.size(), 1);
  llvm::AllocaInst* values = stack_memory(llvm::ArrayType::get(i64, room), 8, "values");
  llvm::AllocaInst* codes = stack_memory(llvm::ArrayType::get(i32, room), 8, "codes");
  if (items.empty()) {
    b_.CreateStore(b_.getInt64(0), values);
    b_.CreateStore(b_.getInt32(TENON_VALUE_NONE), codes);
  }
  for (size_t i = 0; i < items.size(); ++i) {
    const NodePtr& item = items[i];
    auto region = cast<tir::BufferRegion>(item);
    if (const auto buffer = cast<tir::Buffer>(item)) region = tir::BufferRegion::whole(buffer);
    llvm::Value* passed = nullptr;
    int kind = TENON_VALUE_NONE;
    if (region) {
      passed = dl_tensor(*region, origin);
      kind = TENON_VALUE_TENSOR;
    } else if (const auto* text = item.as<StringImm>()) {
      passed = m_.text(text->value);
      kind = TENON_VALUE_TEXT;
    } else {
      const Expr scalar = downcast<ExprNode>(item);
      passed = value(scalar);
      if (scalar->dtype.is_handle()) {
        kind = TENON_VALUE_POINTER;
      } else if (scalar->dtype.is_float()) {
        passed = convert(passed, scalar->dtype, kFloat64, origin);
        kind = TENON_VALUE_FLOAT;
      } else {
        passed = convert(passed, scalar->dtype, kInt64, origin);
        kind = scalar->dtype.is_uint() ? TENON_VALUE_UINT : TENON_VALUE_INT;
      }
    }
    b_.CreateStore(passed, b_.CreateConstInBoundsGEP1_64(i64, values, i));
    b_.CreateStore(b_.getInt32(static_cast<uint32_t>(kind)),
                   b_.CreateConstInBoundsGEP1_64(i32, codes, i));
  }
  return {values, codes};
}

// Through the host, which knows what is registered and takes over what functions allocate.
void FunctionCodegen::call_packed(const std::string& name, const PackedValues& args, size_t count,
                                  const PackedValues& results, size_t result_count,
                                  const Origin& origin) {
  llvm::Type *i32 = b_.getInt32Ty(), *p = b_.getPtrTy();
  const auto number = [&](size_t n) { return b_.getInt32(static_cast<uint32_t>(n)); };
  llvm::Value* function = b_.CreateLoad(
      p,
      b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), context_, offsetof(TenonContext, call_packed)));
  auto* type = llvm::FunctionType::get(i32, {p, i32, p, p, i32, p, p, i32, p}, false);
  llvm::Value* code = b_.CreateCall(
      type, function,
      {context_, number(m_.packed_index(name)), args.values, args.codes, number(count),
       results.values, results.codes, number(result_count), m_.text(where(origin))});
  memo_.clear();  // what was read before may have changed
  return_if_failed(code);
}

llvm::Value* FunctionCodegen::generate_packed(const Call& call) {
  const std::string name = *backend::packed_name(call);
  const std::vector<NodePtr> items(call.args.begin() + 1, call.args.end());
  const PackedValues args = packed_values(items, call.origin);
  const PackedValues result = packed_values({}, call.origin);
  call_packed(name, args, items.size(), result, 1, call.origin);
  if (call.dtype.is_void()) return b_.getInt32(0);
  if (call.dtype.is_handle()) return b_.CreateLoad(b_.getPtrTy(), result.values);
  // The function may say that it gives the other kind of number.
  llvm::Value* code = b_.CreateLoad(b_.getInt32Ty(), result.codes);
  const auto is_of = [&](uint32_t kind) { return b_.CreateICmpEQ(code, b_.getInt32(kind)); };
  llvm::Value* integer = b_.CreateLoad(b_.getInt64Ty(), result.values);
  llvm::Value* number = b_.CreateLoad(b_.getDoubleTy(), result.values);
  if (call.dtype.is_float())
    return convert(
        b_.CreateSelect(is_of(TENON_VALUE_INT), b_.CreateSIToFP(integer, b_.getDoubleTy()), number),
        kFloat64, call.dtype, call.origin);
  number = b_.CreateIntrinsic(llvm::Intrinsic::fptosi_sat, {b_.getInt64Ty(), b_.getDoubleTy()},
                              {number});
  return convert(b_.CreateSelect(is_of(TENON_VALUE_FLOAT), number, integer), kInt64, call.dtype,
                 call.origin);
}

// What is written is a result, everything else an argument.
void FunctionCodegen::generate_packed_library(const tir::CallTir& call,
                                              const tir::ExternFunction& function) {
  std::vector<NodePtr> args, results;
  for (size_t i = 0; i < call.args.size(); ++i)
    (function.uses[i] == tir::ParamUse::kOut ? results : args).push_back(call.args[i]);
  call_packed(function.symbol, packed_values(args, call.origin), args.size(),
              packed_values(results, call.origin), std::max<size_t>(results.size(), 1),
              call.origin);
}

// An array, or a struct as C lays it out: LLVM's own layout of these members is C's.
llvm::Value* FunctionCodegen::group_memory(const backend::LibraryArgument& argument) {
  const auto passed = [&](const Expr& item) {
    llvm::Value* scalar = value(item);
    return item->dtype.is_bool() ? b_.CreateZExt(scalar, b_.getInt8Ty()) : scalar;
  };
  std::vector<llvm::Value*> values;
  for (const Expr& item : argument.items) values.push_back(passed(item));
  std::vector<llvm::Type*> members;
  size_t next = 0;
  for (const tir::ParamGroup::Member& member : argument.group->members) {
    llvm::Type* item = values[next]->getType();
    members.push_back(
        member.count == 0 ? item : llvm::ArrayType::get(item, static_cast<uint64_t>(member.count)));
    next += static_cast<size_t>(member.size());
  }
  auto* type = llvm::StructType::get(b_.getContext(), members);
  llvm::AllocaInst* memory = stack_memory(type, 16, argument.group->name.c_str());
  next = 0;
  for (size_t m = 0; m < members.size(); ++m) {
    llvm::Value* place = b_.CreateStructGEP(type, memory, static_cast<unsigned>(m));
    const tir::ParamGroup::Member& member = argument.group->members[m];
    for (int64_t k = 0; k < member.size(); ++k, ++next)
      b_.CreateStore(values[next], b_.CreateConstInBoundsGEP1_64(values[next]->getType(), place,
                                                                 static_cast<uint64_t>(k)));
  }
  return memory;
}

void FunctionCodegen::generate_call_library(const tir::CallTir& call,
                                            const tir::ExternFunction& function) {
  check_facts(backend::unproved_facts(call, function),
              tir::callee_of(call.callee->name, ref_to(&function)), call.origin);
  if (function.is_packed) return generate_packed_library(call, function);
  std::vector<llvm::Value*> args;
  std::vector<llvm::Type*> types;
  for (const backend::LibraryArgument& argument : backend::bind_library_arguments(call, function)) {
    if (argument.group) {
      args.push_back(group_memory(argument));
    } else if (const auto* text = argument.scalar ? argument.scalar.as<StringImm>() : nullptr) {
      args.push_back(m_.text(text->value));
    } else if (argument.scalar) {
      llvm::Value* scalar = value(argument.scalar);
      // C passes a _Bool as a byte of 0 or 1.
      if (argument.scalar->dtype.is_bool()) scalar = b_.CreateZExt(scalar, b_.getInt8Ty());
      args.push_back(scalar);
    } else {
      const backend::CallArguments::Pointer& at = argument.pointer;
      llvm::Value* data = element_pointer(pointer_of(*at.buffer, call.origin),
                                          offset_of(*at.buffer, at.minimum), *at.buffer);
      args.push_back(argument.type.kind == tir::CType::Kind::kTensor ? dl_tensor(argument, data)
                                                                     : data);
    }
    types.push_back(args.back()->getType());
  }
  llvm::Type* result = function.result.is_void() ? b_.getVoidTy() : b_.getInt32Ty();
  auto* type = llvm::FunctionType::get(result, types, false);
  llvm::FunctionCallee callee = m_.module().getOrInsertFunction(function.symbol, type);
  if (auto* declared = llvm::dyn_cast<llvm::Function>(callee.getCallee()))
    declared->setDoesNotThrow();
  llvm::CallInst* code = b_.CreateCall(callee, args);
  memo_.clear();  // what was read before may have changed
  if (function.result.is_void()) return;
  fail_unless(b_.CreateICmpEQ(code, b_.getInt32(0)), TENON_ERROR_LIBRARY, where(call.origin),
              "library function `" + function.symbol + "` failed with code {value}",
              b_.CreateSExt(code, b_.getInt64Ty()), nullptr);
}

}  // namespace tenon::llvm_backend
