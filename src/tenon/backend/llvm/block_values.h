// SPDX-License-Identifier: Apache-2.0
// What the basic block that is being generated has in registers already. An unrolled loop loads and
// broadcasts each of its elements a dozen times: LLVM finds that out from code three times as long.
// Private to backend/llvm.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <map>
#include <vector>

namespace tenon::llvm_backend {

/// Of the block that a builder is at the end of. It reads the instructions itself: whoever makes
/// them does not tell.
class BlockValues {
 public:
  /// What is in memory at `pointer`, as far as an earlier load or store of this type tells; null
  /// where none does, or something may have been written there since.
  llvm::Value* in_memory(llvm::Value* pointer, llvm::Type* type, const llvm::IRBuilder<>& builder);
  /// `value` in each of `lanes` lanes.
  llvm::Value* splat(llvm::Value* value, int lanes, llvm::IRBuilder<>& builder);

 private:
  /// A load, or a store, with what it tells of memory.
  struct Element {
    llvm::Value *pointer, *value;
    const llvm::Value* object;  // what `pointer` points into
    const llvm::Value* base;    // with `offset` bytes more: `pointer`
    int64_t offset, bytes;
  };
  void enter(llvm::BasicBlock* block);
  void read_on();
  Element element(llvm::Value* pointer, llvm::Value* value) const;
  void forget_where(const Element& stored);

  llvm::BasicBlock* block_ = nullptr;
  llvm::Instruction* last_ = nullptr;  // that was read
  std::vector<Element> elements_;
  std::map<std::pair<llvm::Value*, int>, llvm::Value*> splats_;
};

}  // namespace tenon::llvm_backend
