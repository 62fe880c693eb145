// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/llvm/block_values.h"

#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>

#include <algorithm>

namespace tenon::llvm_backend {

// More are in no registers.
static constexpr size_t kMostElements = 256;

// Memory that the function has on its stack is none that its caller, or a pointer in memory, names:
// generated code stores no addresses of it that it loads again.
static bool is_own(const llvm::Value* object) { return llvm::isa<llvm::AllocaInst>(object); }
static bool is_foreign(const llvm::Value* object) {
  return llvm::isa<llvm::Argument, llvm::GlobalValue, llvm::LoadInst>(object);
}

static bool are_apart(const llvm::Value* a, const llvm::Value* b) {
  if (a == b) return false;
  if (llvm::isIdentifiedObject(a) && llvm::isIdentifiedObject(b)) return true;
  return (is_own(a) && is_foreign(b)) || (is_foreign(a) && is_own(b));
}

static bool writes(const llvm::Instruction& instruction) {
  if (const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction)) {
    // LLVM counts hints as writes, to keep them.
    const llvm::Intrinsic::ID id = call->getIntrinsicID();
    if (id == llvm::Intrinsic::prefetch || id == llvm::Intrinsic::assume) return false;
  }
  return instruction.mayWriteToMemory();
}

void BlockValues::enter(llvm::BasicBlock* block) {
  if (block == block_) return;
  block_ = block;
  last_ = nullptr;
  elements_.clear();
  splats_.clear();
}

void BlockValues::forget_where(const Element& stored) {
  std::erase_if(elements_, [&](const Element& one) {
    if (one.base == stored.base)
      return one.offset < stored.offset + stored.bytes && stored.offset < one.offset + one.bytes;
    return !are_apart(one.object, stored.object);
  });
}

BlockValues::Element BlockValues::element(llvm::Value* pointer, llvm::Value* value) const {
  const llvm::DataLayout& layout = block_->getModule()->getDataLayout();
  llvm::APInt offset(64, 0);
  const llvm::Value* base = pointer->stripAndAccumulateConstantOffsets(layout, offset, true);
  return {pointer,
          value,
          llvm::getUnderlyingObject(base),
          base,
          offset.getSExtValue(),
          static_cast<int64_t>(layout.getTypeStoreSize(value->getType()))};
}

void BlockValues::read_on() {
  auto next = last_ ? std::next(last_->getIterator()) : block_->begin();
  for (; next != block_->end(); ++next) {
    llvm::Instruction& instruction = *next;
    last_ = &instruction;
    if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction)) {
      if (load->isSimple()) elements_.push_back(element(load->getPointerOperand(), load));
    } else if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction)) {
      const Element stored = element(store->getPointerOperand(), store->getValueOperand());
      forget_where(stored);
      if (store->isSimple()) elements_.push_back(stored);
    } else if (writes(instruction)) {
      elements_.clear();
    }
    if (elements_.size() > kMostElements)
      elements_.erase(elements_.begin(), elements_.end() - kMostElements / 2);
  }
}

llvm::Value* BlockValues::in_memory(llvm::Value* pointer, llvm::Type* type,
                                    const llvm::IRBuilder<>& builder) {
  enter(builder.GetInsertBlock());
  if (builder.GetInsertPoint() != block_->end()) return nullptr;
  read_on();
  const auto found = std::find_if(elements_.rbegin(), elements_.rend(), [&](const Element& one) {
    return one.pointer == pointer && one.value->getType() == type;
  });
  return found == elements_.rend() ? nullptr : found->value;
}

llvm::Value* BlockValues::splat(llvm::Value* value, int lanes, llvm::IRBuilder<>& builder) {
  enter(builder.GetInsertBlock());
  llvm::Value*& known = splats_[{value, lanes}];
  if (!known) known = builder.CreateVectorSplat(static_cast<unsigned>(lanes), value);
  return known;
}

}  // namespace tenon::llvm_backend
