// SPDX-License-Identifier: Apache-2.0
// Calls of PrimFuncs: direct calls of internal functions. Everything that the callee gets is passed
// by value (pointers to the first elements of regions, dimensions, strides, scalars), so that a
// call has no state but its own and can stand in any thread.
#include "tenon/backend/llvm/codegen.h"
#include "tenon/runtime/abi.h"
#include "tenon/tir/callee.h"

namespace tenon::llvm_backend {

// What nothing shows at compile time is checked before the call.
void FunctionCodegen::check_facts(const std::vector<tir::CallFact>& facts,
                                  const tir::Callee& callee, const Origin& origin) {
  for (const tir::CallFact& fact : facts) {
    llvm::Value* actual = index_value(fact.actual);
    llvm::Value* declared = index_value(fact.declared);
    llvm::Value* holds = b_.CreateICmpEQ(actual, declared);
    if (fact.kind == tir::CallFact::Kind::kStride)
      holds = b_.CreateOr(holds, b_.CreateICmpSLE(index_value(fact.extent), b_.getInt64(1)));
    // What a library answers is a size_t.
    if (fact.kind == tir::CallFact::Kind::kScratch) holds = b_.CreateICmpULE(declared, actual);
    fail_unless(holds, TENON_ERROR_SHAPE, where(origin), backend::message_of(fact, callee), actual,
                declared);
  }
}

llvm::Value* FunctionCodegen::generate_function_call(const GlobalVar& name,
                                                     const std::vector<NodePtr>& args,
                                                     const Origin& origin) {
  const FunctionInfo& callee = m_.callee(name.name, origin);
  const DType returned = callee.function->result;
  const backend::CallArguments passed = backend::bind_arguments(name.name, args, origin, callee);
  std::vector<llvm::Value*> values{context_};
  for (const backend::CallArguments::Pointer& pointer : passed.pointers)
    values.push_back(element_pointer(pointer_of(*pointer.buffer, origin),
                                     offset_of(*pointer.buffer, pointer.minimum), *pointer.buffer));
  check_facts(passed.unproved, tir::callee_of(name.name, callee.function), origin);
  for (size_t i = 0; i < passed.symbols.size(); ++i)
    values.push_back(b_.CreateSExtOrTrunc(index_value(passed.symbols[i]),
                                          m_.register_type(callee.symbols[i]->dtype, {})));
  for (const Expr& scalar : passed.scalars) values.push_back(value(scalar));
  if (callee.uses_constants) values.push_back(constants_);
  llvm::Value* result = nullptr;
  if (!returned.is_void()) {
    result = stack_memory(m_.memory_type(returned, origin), 16, "result");
    values.push_back(result);
  }
  llvm::Value* code = b_.CreateCall(callee.code, values);
  if (callee.can_fail) return_if_failed(code);
  if (!result) return nullptr;
  return from_memory(b_.CreateLoad(m_.memory_type(returned, origin), result), returned);
}

}  // namespace tenon::llvm_backend
