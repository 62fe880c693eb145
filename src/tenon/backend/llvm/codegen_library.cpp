// Calls of library functions with declared signatures.
#include <dlpack/dlpack.h>

#include <cstddef>

#include "tenon/backend/llvm/codegen.h"
#include "tenon/runtime/abi.h"

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
