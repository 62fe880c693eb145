// SPDX-License-Identifier: Apache-2.0
// Generates LLVM IR for statements: loops, parallel loops, allocations, calls, checks.
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/MDBuilder.h>

#include <algorithm>
#include <cstddef>

#include "tenon/backend/llvm/codegen.h"
#include "tenon/runtime/abi.h"
#include "tenon/tir/host_memory.h"

namespace tenon::llvm_backend {

using tir::Buffer;

static constexpr uint64_t kMaxStackBytes = 256 << 10;  // of one buffer

FunctionCodegen::FunctionCodegen(ModuleCodegen& module, const FunctionInfo& info,
                                 llvm::Function* function)
    : m_(module), info_(info), f_(function), b_(module.context()) {
  b_.SetInsertPoint(llvm::BasicBlock::Create(m_.context(), "entry", f_));
}

llvm::BasicBlock* FunctionCodegen::block(const char* name) {
  return llvm::BasicBlock::Create(m_.context(), name, f_);
}

std::string FunctionCodegen::where(const Origin& origin) const {
  if (origin) return origin.name();
  if (info_.function->origin) return info_.function->origin.name();
  return info_.name;
}

void FunctionCodegen::define() {
  const tir::PrimFunc& function = *info_.function;
  auto arg = f_->arg_begin();
  context_ = arg++;
  std::vector<std::pair<const Buffer*, llvm::Value*>> params;
  for (size_t i = 0; i < function.params.size(); ++i)
    if (function.buffers[i]) params.emplace_back(function.buffers[i].get(), arg++);
  for (const Ref<Var>& symbol : info_.symbols) {
    vars_[symbol.get()] = arg++;
    signs_.add_nonnegative(symbol.get());  // a dimension, a stride or an offset
  }
  for (size_t i = 0; i < function.params.size(); ++i)
    if (!function.buffers[i]) vars_[function.params[i].get()] = arg++;
  if (info_.uses_constants) constants_ = arg++;
  if (!function.result.is_void()) result_ = arg++;
  for (const auto& [buffer, pointer] : params) {
    buffers_[buffer] = pointer;
    llvm::Value* data = pointer;
    if (buffer->elem_offset && !is_int(buffer->elem_offset, 0))
      data = b_.CreateGEP(m_.memory_type(buffer->dtype, buffer->origin), pointer,
                          b_.CreateNeg(index_value(buffer->elem_offset)));
    vars_[buffer->data.get()] = data;
  }
  generate(function.body);
  b_.CreateRet(b_.getInt32(TENON_OK));
}

void FunctionCodegen::generate(const tir::Stmt& stmt) {
  if (!stmt) return;
  memo_.clear();
  switch (kind_of(stmt)) {
    case tir::StmtKind::kSeq: {
      for (const tir::Stmt& inner : stmt.to<tir::Seq>().stmts) generate(inner);
      return;
    }
    case tir::StmtKind::kBufferStore: {
      const auto& node = stmt.to<tir::BufferStore>();
      store(*node.buffer, node.indices, value(node.value), nullptr, node.origin);
      return;
    }
    case tir::StmtKind::kEvaluate: {
      const auto& node = stmt.to<tir::Evaluate>();
      if (!as_int(node.value)) value(node.value);
      return;
    }
    case tir::StmtKind::kBind: {
      const auto& node = stmt.to<tir::Bind>();
      bind(*node.var, value(node.value));
      if (node.value->dtype.is_integer() && signs_.is_nonnegative(node.value))
        signs_.add_nonnegative(node.var.get());
      return;
    }
    case tir::StmtKind::kAllocBuffer: return generate_alloc(stmt.to<tir::AllocBuffer>());
    case tir::StmtKind::kAllocConst: {
      const auto& node = stmt.to<tir::AllocConst>();
      const int64_t offset = m_.constant_offset(*node.data);
      llvm::Value* pointer = b_.CreateInBoundsGEP(b_.getInt8Ty(), constants_,
                                                  b_.getInt64(static_cast<uint64_t>(offset)));
      buffers_[node.buffer.get()] = pointer;
      vars_[node.buffer->data.get()] = pointer;
      return;
    }
    case tir::StmtKind::kDeclBuffer: {
      const auto& node = stmt.to<tir::DeclBuffer>();
      llvm::Value* data = value(node.data);
      const Buffer& buffer = *node.buffer;
      if (!vars_.count(buffer.data.get())) vars_[buffer.data.get()] = data;
      llvm::Value* first = data;
      if (buffer.elem_offset)
        first = element_pointer(data, index_value(buffer.elem_offset), buffer);
      buffers_[&buffer] = first;
      return;
    }
    case tir::StmtKind::kFor: {
      const auto& node = stmt.to<tir::For>();
      if (node.kind == tir::ForKind::kThreadBinding)
        throw CompileError(kUnsupported, node.origin, "a loop bound to `{}` has no native code",
                           node.thread_tag);
      if (node.kind == tir::ForKind::kParallel && !in_task_ && as_int(node.extent) != 1)
        return generate_parallel(node);
      return generate_for(node);
    }
    case tir::StmtKind::kWhile: return generate_while(stmt.to<tir::While>());
    case tir::StmtKind::kIfThenElse: return generate_if(stmt.to<tir::IfThenElse>());
    case tir::StmtKind::kAssert: return generate_assert(stmt.to<tir::Assert>());
    case tir::StmtKind::kAttrStmt: return generate(stmt.to<tir::AttrStmt>().body);
    case tir::StmtKind::kCallTir: {
      const auto& node = stmt.to<tir::CallTir>();
      if (const auto external = m_.library_function(node.callee->name))
        return generate_call_library(node, *external);
      generate_function_call(*node.callee, node.args, node.origin);
      return;
    }
    case tir::StmtKind::kBlock:
    case tir::StmtKind::kBlockRealize: break;
  }
  throw CompileError(kWrongForm, stmt->origin,
                     "`{}` in PrimFunc `{}` has no native code; the module is not lowered",
                     stmt->type().name, info_.name);
}

void FunctionCodegen::generate_while(const tir::While& loop) {
  llvm::BasicBlock* head = block("while");
  llvm::BasicBlock* body = block("while.body");
  llvm::BasicBlock* end = block("while.end");
  b_.CreateBr(head);
  b_.SetInsertPoint(head);
  b_.CreateCondBr(value(loop.condition), body, end);
  b_.SetInsertPoint(body);
  generate(loop.body);
  b_.CreateBr(head);
  b_.SetInsertPoint(end);
  memo_.clear();
}

// `T.likely` of a condition, or of the opposite of one, as weights; null: nothing is said.
static llvm::MDNode* weights_of(const Expr& condition, llvm::LLVMContext& context) {
  const auto is_likely = [](const Expr& expr) {
    const auto* call = expr.as<Call>();
    return call && call->is(IntrinsicId::kLikely);
  };
  constexpr uint32_t kLikely = 1 << 20;
  if (is_likely(condition)) return llvm::MDBuilder(context).createBranchWeights(kLikely, 1);
  const auto* opposite = condition.as<Not>();
  return opposite && is_likely(opposite->value)
             ? llvm::MDBuilder(context).createBranchWeights(1, kLikely)
             : nullptr;
}

void FunctionCodegen::generate_if(const tir::IfThenElse& branch) {
  if (const auto known = as_int(branch.condition)) {
    generate(*known ? branch.then_case : branch.else_case);
    return;
  }
  llvm::BasicBlock* yes = block("then");
  llvm::BasicBlock* no = branch.else_case ? block("else") : nullptr;
  llvm::BasicBlock* end = block("endif");
  b_.CreateCondBr(value(branch.condition), yes, no ? no : end,
                  weights_of(branch.condition, m_.context()));
  b_.SetInsertPoint(yes);
  generate(branch.then_case);
  b_.CreateBr(end);
  if (no) {
    b_.SetInsertPoint(no);
    generate(branch.else_case);
    b_.CreateBr(end);
  }
  b_.SetInsertPoint(end);
  memo_.clear();
}

// The exit test stands at the end (LLVM's rotated form): code before the loop is entered once.
void FunctionCodegen::generate_for(const tir::For& loop) {
  llvm::Value* min = index_value(loop.min);
  llvm::Value* extent = index_value(loop.extent);
  const auto count = as_int(loop.extent);
  if (count && *count <= 0) return;
  llvm::Type* type = m_.register_type(loop.loop_var->dtype, loop.origin);
  if (signs_.is_nonnegative(loop.min)) signs_.add_nonnegative(loop.loop_var.get());
  if (count == 1) {
    bind(*loop.loop_var, b_.CreateTrunc(min, type));
    generate(loop.body);
    return;
  }
  llvm::Value* end = b_.CreateAdd(min, extent, "", false, true);
  llvm::BasicBlock* body = block("loop");
  llvm::BasicBlock* exit = block("loop.end");
  if (count) {
    b_.CreateBr(body);
  } else {
    b_.CreateCondBr(b_.CreateICmpSGT(extent, b_.getInt64(0)), body, exit);
  }
  llvm::BasicBlock* before = b_.GetInsertBlock();
  b_.SetInsertPoint(body);
  llvm::PHINode* i = b_.CreatePHI(b_.getInt64Ty(), 2, loop.loop_var->name);
  i->addIncoming(min, before);
  bind(*loop.loop_var, b_.CreateTrunc(i, type));
  generate(loop.body);
  llvm::Value* next = b_.CreateAdd(i, b_.getInt64(1), "", signs_.is_nonnegative(loop.min), true);
  i->addIncoming(next, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpSLT(next, end), body, exit);
  b_.SetInsertPoint(exit);
  memo_.clear();
}

// Everything that the statement uses and does not define.
static std::vector<NodePtr> free_uses(const tir::Stmt& stmt, const Ref<Var>& defined) {
  std::vector<NodePtr> order;
  std::unordered_set<const Node*> seen{defined.get()};
  const std::function<void(const NodePtr&)> visit = [&](const NodePtr& root) {
    walk(root, [&](const NodePtr& node) {
      if (!node.get()->type().identity || !seen.insert(node.get()).second) return;
      order.push_back(node);
      if (const auto* buffer = node.as<Buffer>()) {
        for (const Expr& dim : buffer->shape) visit(dim);
        for (const Expr& stride : buffer->strides) visit(stride);
        if (buffer->elem_offset) visit(buffer->elem_offset);
        visit(buffer->data);
      }
    });
  };
  visit(stmt);
  return order;
}

// The body becomes a function of the task and of what it captures; a second one unpacks the
// captured values. Arguments carry `noalias` where loads from memory could not.
void FunctionCodegen::generate_parallel(const tir::For& loop) {
  llvm::Value* min = index_value(loop.min);
  llvm::Value* extent = index_value(loop.extent);
  std::vector<llvm::Value*> captured;
  std::unordered_map<llvm::Value*, size_t> position;
  const auto capture = [&](llvm::Value* value) {
    if (llvm::isa<llvm::Constant>(value)) return;
    if (position.emplace(value, captured.size()).second) captured.push_back(value);
  };
  capture(min);
  if (constants_) capture(constants_);
  if (result_) capture(result_);
  const std::vector<NodePtr> uses = free_uses(loop.body, loop.loop_var);
  for (const NodePtr& use : uses) {
    if (const auto it = vars_.find(use.get()); it != vars_.end()) capture(it->second);
    if (const auto it = buffers_.find(use.get()); it != buffers_.end()) capture(it->second);
  }
  std::vector<llvm::Type*> types;
  for (llvm::Value* value : captured) types.push_back(value->getType());
  auto* env_type = llvm::StructType::get(m_.context(), types);
  llvm::Type* i32 = b_.getInt32Ty();
  llvm::Type* i64 = b_.getInt64Ty();
  llvm::Type* pointer = b_.getPtrTy();

  std::vector<llvm::Type*> body_types{pointer, i64};
  body_types.insert(body_types.end(), types.begin(), types.end());
  auto* body =
      llvm::Function::Create(llvm::FunctionType::get(i32, body_types, false),
                             llvm::Function::InternalLinkage, f_->getName() + ".body", m_.module());
  m_.set_attributes(*body);
  body->addFnAttr(llvm::Attribute::NoInline);
  if (info_.scheduled) body->addFnAttr(kScheduledAttribute);
  std::unordered_map<const llvm::Value*, int> roots;
  for (llvm::Value* value : captured)
    if (value->getType()->isPointerTy()) ++roots[llvm::getUnderlyingObject(value)];
  for (size_t i = 0; i < captured.size(); ++i) {
    if (!captured[i]->getType()->isPointerTy()) continue;
    const auto* root = llvm::getUnderlyingObject(captured[i]);
    const auto* argument = llvm::dyn_cast<llvm::Argument>(root);
    const bool own = (argument && argument->hasNoAliasAttr()) || llvm::isa<llvm::AllocaInst>(root);
    const auto index = static_cast<unsigned>(i + 2);
    if (own && roots[root] == 1) body->addParamAttr(index, llvm::Attribute::NoAlias);
    if (argument && argument == captured[i] && argument->hasAttribute(llvm::Attribute::ReadOnly))
      body->addParamAttr(index, llvm::Attribute::ReadOnly);
  }
  body->addParamAttr(0, llvm::Attribute::NoAlias);

  {
    FunctionCodegen inner(m_, info_, body);
    inner.context_ = body->getArg(0);
    inner.in_task_ = true;
    const auto inside = [&](llvm::Value* value) -> llvm::Value* {
      const auto it = position.find(value);
      return it == position.end() ? value : body->getArg(static_cast<unsigned>(it->second + 2));
    };
    for (const NodePtr& use : uses) {
      if (const auto it = vars_.find(use.get()); it != vars_.end())
        inner.vars_[use.get()] = inside(it->second);
      if (const auto it = buffers_.find(use.get()); it != buffers_.end())
        inner.buffers_[use.get()] = inside(it->second);
      if (signs_.has(use.get())) inner.signs_.add_nonnegative(use.get());
    }
    if (constants_) inner.constants_ = inside(constants_);
    if (result_) inner.result_ = inside(result_);
    llvm::Value* index = inner.b_.CreateAdd(body->getArg(1), inside(min), "", false, true);
    inner.vars_[loop.loop_var.get()] =
        inner.b_.CreateTrunc(index, m_.register_type(loop.loop_var->dtype, loop.origin));
    if (signs_.is_nonnegative(loop.min)) inner.signs_.add_nonnegative(loop.loop_var.get());
    inner.generate(loop.body);
    inner.b_.CreateRet(inner.b_.getInt32(TENON_OK));
  }

  auto* task =
      llvm::Function::Create(llvm::FunctionType::get(i32, {pointer, pointer, i64}, false),
                             llvm::Function::InternalLinkage, f_->getName() + ".task", m_.module());
  m_.set_attributes(*task);
  {
    llvm::IRBuilder<> b(llvm::BasicBlock::Create(m_.context(), "entry", task));
    std::vector<llvm::Value*> args{task->getArg(0), task->getArg(2)};
    for (size_t i = 0; i < captured.size(); ++i)
      args.push_back(b.CreateLoad(
          types[i], b.CreateStructGEP(env_type, task->getArg(1), static_cast<unsigned>(i))));
    b.CreateRet(b.CreateCall(body, args));
  }

  llvm::Value* env = stack_memory(env_type, 16, "env");
  for (size_t i = 0; i < captured.size(); ++i)
    b_.CreateStore(captured[i], b_.CreateStructGEP(env_type, env, static_cast<unsigned>(i)));
  llvm::Value* run =
      b_.CreateLoad(pointer, b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), context_,
                                                           offsetof(TenonContext, parallel_for)));
  auto* run_type = llvm::FunctionType::get(i32, {pointer, pointer, pointer, i64}, false);
  llvm::Value* tasks = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, extent, b_.getInt64(0));
  return_if_failed(b_.CreateCall(run_type, run, {context_, task, env, tasks}));
  memo_.clear();
}

llvm::AllocaInst* FunctionCodegen::stack_memory(llvm::Type* type, uint64_t alignment,
                                                const std::string& name) {
  llvm::BasicBlock& entry = f_->getEntryBlock();
  llvm::IRBuilder<> b(&entry, entry.begin());
  llvm::AllocaInst* memory = b.CreateAlloca(type, nullptr, name);
  memory->setAlignment(llvm::Align(alignment));
  return memory;
}

// Memory that the host gives: an output by its dimensions, a part of the workspace by its bytes.
void FunctionCodegen::generate_host_alloc(const tir::AllocBuffer& alloc) {
  const Buffer& buffer = *alloc.buffer;
  llvm::Type *i32 = b_.getInt32Ty(), *i64 = b_.getInt64Ty(), *pointer = b_.getPtrTy();
  const auto output = tir::host_output(alloc);
  llvm::Value* place = stack_memory(pointer, alignof(void*), buffer.name + "_place");
  llvm::Value* size = nullptr;
  if (output) {
    auto* type = llvm::ArrayType::get(i64, std::max<size_t>(1, buffer.ndim()));
    size = stack_memory(type, alignof(int64_t), buffer.name + "_dims");
    for (size_t d = 0; d < buffer.ndim(); ++d)
      b_.CreateStore(index_value(buffer.shape[d]), b_.CreateConstInBoundsGEP1_64(i64, size, d));
  } else {
    size = index_value(tir::element_count(buffer.shape) * buffer.dtype.bytes());
  }
  const size_t member =
      output ? offsetof(TenonContext, provide_output) : offsetof(TenonContext, provide_memory);
  llvm::Value* give =
      b_.CreateLoad(pointer, b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), context_, member));
  auto* type = llvm::FunctionType::get(i32, {pointer, i32, size->getType(), pointer}, false);
  const int64_t number = output ? *output : *tir::host_workspace(alloc);
  llvm::Value* code = b_.CreateCall(
      type, give, {context_, b_.getInt32(static_cast<uint32_t>(number)), size, place});
  // The host knows the number only.
  const std::string node =
      output ? buffer.origin.name() : tir::asked_by(*m_.entry().function, buffer);
  fail_unless(b_.CreateICmpEQ(code, b_.getInt32(TENON_OK)), code, node, "no memory", nullptr,
              nullptr);
  llvm::Value* memory = b_.CreateLoad(pointer, place);
  vars_[buffer.data.get()] = memory;
  buffers_[&buffer] = memory;
}

void FunctionCodegen::generate_alloc(const tir::AllocBuffer& alloc) {
  if (tir::is_host_memory(alloc)) return generate_host_alloc(alloc);
  const Buffer& buffer = *alloc.buffer;
  int64_t count = backend::allocated_elements(alloc, info_.name);
  if (buffer.elem_offset) {
    const auto offset = as_int(buffer.elem_offset);
    check(offset.has_value(), "an allocated buffer with a symbolic offset");
    count += *offset;
  }
  count = std::max<int64_t>(count, 1);
  if (static_cast<uint64_t>(count) > kMaxStackBytes / static_cast<uint64_t>(buffer.dtype.bytes()))
    throw CompileError(kUnsupported, alloc.origin,
                       "buffer `{}` of shape {} is allocated inside PrimFunc `{}` and was not "
                       "planned; at most {} bytes go on the stack",
                       buffer.name, str(buffer.shape), info_.name, kMaxStackBytes);
  auto* type = llvm::ArrayType::get(m_.memory_type(buffer.dtype, alloc.origin),
                                    static_cast<uint64_t>(count));
  llvm::Value* memory = stack_memory(
      type, static_cast<uint64_t>(std::max<int64_t>(buffer.alignment, 64)), buffer.name);
  vars_[buffer.data.get()] = memory;
  if (buffer.elem_offset) memory = element_pointer(memory, index_value(buffer.elem_offset), buffer);
  buffers_[&buffer] = memory;
}

void FunctionCodegen::return_if_failed(llvm::Value* code) {
  llvm::BasicBlock* failed = block("failed");
  llvm::BasicBlock* next = block("next");
  b_.CreateCondBr(b_.CreateICmpEQ(code, b_.getInt32(TENON_OK)), next, failed,
                  llvm::MDBuilder(m_.context()).createBranchWeights(1 << 20, 1));
  b_.SetInsertPoint(failed);
  b_.CreateRet(code);
  b_.SetInsertPoint(next);
}

void FunctionCodegen::fail_unless(llvm::Value* condition, int code, const std::string& where,
                                  const std::string& message, llvm::Value* value,
                                  llvm::Value* bound) {
  fail_unless(condition, b_.getInt32(static_cast<uint32_t>(code)), where, message, value, bound);
}

void FunctionCodegen::fail_unless(llvm::Value* condition, llvm::Value* code,
                                  const std::string& where, const std::string& message,
                                  llvm::Value* value, llvm::Value* bound) {
  if (const auto* known = llvm::dyn_cast<llvm::ConstantInt>(condition); known && known->isOne())
    return;
  llvm::BasicBlock* failed = block("assert.failed");
  llvm::BasicBlock* next = block("assert.holds");
  b_.CreateCondBr(condition, next, failed,
                  llvm::MDBuilder(m_.context()).createBranchWeights(1 << 20, 1));
  b_.SetInsertPoint(failed);
  llvm::Type* i32 = b_.getInt32Ty();
  llvm::Type* i64 = b_.getInt64Ty();
  llvm::Type* pointer = b_.getPtrTy();
  llvm::Value* report = b_.CreateLoad(
      pointer,
      b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), context_, offsetof(TenonContext, report)));
  auto* type = llvm::FunctionType::get(i32, {pointer, i32, pointer, pointer, i64, i64}, false);
  b_.CreateRet(b_.CreateCall(type, report,
                             {context_, code, m_.text(where), m_.text(message),
                              value ? value : b_.getInt64(0), bound ? bound : b_.getInt64(0)}));
  b_.SetInsertPoint(next);
}

// An index check `low <= value and value < bound` reports the value and the bound.
void FunctionCodegen::generate_assert(const tir::Assert& assertion) {
  if (const auto known = as_int(assertion.condition); known && *known) return;
  llvm::Value* holds = value(assertion.condition);
  int code = TENON_ERROR_VALUE;
  llvm::Value *index = nullptr, *bound = nullptr;
  const auto* both = assertion.condition.as<Binary>();
  const Binary* upper = nullptr;
  if (both && both->op == BinaryOp::kAnd) {
    for (const Expr& side : {both->lhs, both->rhs})
      if (const auto* less = side.as<Binary>();
          less && less->op == BinaryOp::kLT && less->lhs->dtype.is_integer())
        upper = less;
  }
  if (upper && assertion.message.find("{value}") != std::string::npos) {
    code = TENON_ERROR_INDEX;
    // Evaluated where they are reported only: after the branch LLVM sinks them there.
    index = index_value(upper->lhs);
    bound = index_value(upper->rhs);
  }
  fail_unless(holds, code, where(assertion.origin), assertion.message, index, bound);
  memo_.clear();
}

}  // namespace tenon::llvm_backend
