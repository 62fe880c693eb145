// Calls of library functions with declared signatures.
#include <dlpack/dlpack.h>

#include <cstddef>

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
  const uint8_t code = dtype.is_bool()    ? TENON_DTYPE_BOOL
                       : dtype.is_float() ? (dtype.code == DType::Code::kBFloat ? TENON_DTYPE_BFLOAT
                                                                                : TENON_DTYPE_FLOAT)
                       : dtype.is_uint()  ? TENON_DTYPE_UINT
                                          : TENON_DTYPE_INT;
  put(offsetof(DLTensor, data), data);
  put(offsetof(DLTensor, device), b_.getInt32(kDLCPU));
  put(offsetof(DLTensor, device) + sizeof(int32_t), b_.getInt32(0));
  put(offsetof(DLTensor, ndim), b_.getInt32(static_cast<uint32_t>(rank)));
  put(offsetof(DLTensor, dtype), b_.getInt8(code));
  put(offsetof(DLTensor, dtype) + 1, b_.getInt8(static_cast<uint8_t>(dtype.bits)));
  put(offsetof(DLTensor, dtype) + 2, b_.getInt16(1));
  put(offsetof(DLTensor, shape), shape);
  put(offsetof(DLTensor, strides), strides);
  put(offsetof(DLTensor, byte_offset), b_.getInt64(0));
  return tensor;
}

// `int f(value* args, int* codes, int count, value* result, int* result_code, void*)`, as TVM's
// packed functions in C: each value 8 bytes, its kind in a code.
llvm::Value* FunctionCodegen::generate_packed(const Call& call) {
  enum Kind : uint32_t {
    kInt = 0,
    kUnsigned = 1,
    kFloat = 2,
    kHandle = 3,
    kTensor = 7,
    kText = 11
  };
  const auto symbol = backend::packed_symbol(call);
  if (!symbol)
    throw CompileError(kBadArgument, call.origin, "`T.{}` without a function's name",
                       call.op->name);
  const size_t count = call.args.size() - 1;
  llvm::Type *i64 = b_.getInt64Ty(), *i32 = b_.getInt32Ty();
  llvm::AllocaInst* values = stack_memory(llvm::ArrayType::get(i64, count + 1), 8, "values");
  llvm::AllocaInst* codes = stack_memory(llvm::ArrayType::get(i32, count + 1), 8, "codes");
  const auto put = [&](size_t i, llvm::Value* value, uint32_t kind) {
    b_.CreateStore(value, b_.CreateConstInBoundsGEP1_64(i64, values, i));
    b_.CreateStore(b_.getInt32(kind), b_.CreateConstInBoundsGEP1_64(i32, codes, i));
  };
  for (size_t i = 0; i < count; ++i) {
    const NodePtr& arg = call.args[i + 1];
    auto region = cast<tir::BufferRegion>(arg);
    if (const auto buffer = cast<tir::Buffer>(arg)) region = tir::BufferRegion::whole(buffer);
    if (region) {
      backend::LibraryArgument tensor;
      tensor.pointer.buffer = region->buffer;
      for (const tir::Range& range : region->region) tensor.pointer.minimum.push_back(range.min);
      tensor.extents = tir::kept_extents(*region);
      tensor.strides = tir::kept_strides(*region);
      tensor.dtype = region->buffer->dtype;
      put(i,
          dl_tensor(tensor, element_pointer(pointer_of(*region->buffer, call.origin),
                                            offset_of(*region->buffer, tensor.pointer.minimum),
                                            tensor.dtype)),
          kTensor);
      continue;
    }
    if (const auto* text = arg.as<StringImm>()) {
      put(i, m_.text(text->value), kText);
      continue;
    }
    const Expr scalar = downcast<ExprNode>(arg);
    llvm::Value* passed = value(scalar);
    if (scalar->dtype.is_handle()) {
      put(i, passed, kHandle);
    } else if (scalar->dtype.is_float()) {
      put(i, convert(passed, scalar->dtype, kFloat64, call.origin), kFloat);
    } else {
      put(i, convert(passed, scalar->dtype, kInt64, call.origin),
          scalar->dtype.is_uint() ? kUnsigned : kInt);
    }
  }
  llvm::AllocaInst* result = stack_memory(i64, 8, "result");
  llvm::AllocaInst* result_code = stack_memory(i32, 8, "result_code");
  b_.CreateStore(b_.getInt64(0), result);
  llvm::Type* pointer = b_.getPtrTy();
  auto* type =
      llvm::FunctionType::get(i32, {pointer, pointer, i32, pointer, pointer, pointer}, false);
  llvm::Value* code =
      b_.CreateCall(m_.module().getOrInsertFunction(*symbol, type),
                    {values, codes, b_.getInt32(static_cast<uint32_t>(count)), result, result_code,
                     llvm::ConstantPointerNull::get(b_.getPtrTy())});
  memo_.clear();
  fail_unless(b_.CreateICmpEQ(code, b_.getInt32(0)), TENON_ERROR_LIBRARY, where(call.origin),
              "packed function `" + *symbol + "` failed with code {value}",
              b_.CreateSExt(code, i64), nullptr);
  if (call.dtype.is_void()) return b_.getInt32(0);
  if (call.dtype.is_handle()) return b_.CreateLoad(pointer, result);
  if (call.dtype.is_float())
    return convert(b_.CreateLoad(b_.getDoubleTy(), result), kFloat64, call.dtype, call.origin);
  return convert(b_.CreateLoad(i64, result), kInt64, call.dtype, call.origin);
}

void FunctionCodegen::generate_call_library(const tir::CallTir& call,
                                            const tir::ExternFunction& function) {
  std::vector<llvm::Value*> args;
  std::vector<llvm::Type*> types;
  for (const backend::LibraryArgument& argument : backend::bind_library_arguments(call, function)) {
    if (argument.scalar) {
      llvm::Value* scalar = value(argument.scalar);
      // C passes a _Bool as a byte of 0 or 1.
      if (argument.scalar->dtype.is_bool()) scalar = b_.CreateZExt(scalar, b_.getInt8Ty());
      args.push_back(scalar);
    } else {
      const backend::CallArguments::Pointer& at = argument.pointer;
      llvm::Value* data = element_pointer(pointer_of(*at.buffer, call.origin),
                                          offset_of(*at.buffer, at.minimum), at.buffer->dtype);
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
