// SPDX-License-Identifier: Apache-2.0
// Sets and maps of nodes by identity, for walks: open addressing, nothing is ever removed.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "tenon/ir/node.h"

namespace tenon {

/// A place in a table of `size` (a power of two) for a node.
inline size_t node_slot(const Node* node, size_t size) {
  const uint64_t mixed = (reinterpret_cast<uintptr_t>(node) >> 4) * 0x9e3779b97f4a7c15ULL;
  return static_cast<size_t>(mixed >> 20) & (size - 1);
}

/// A set; up to a few nodes need no memory of their own.
class NodeSet {
 public:
  /// False where it is there already.
  bool insert(const Node* node) {
    if (count_ * 2 >= size_) grow();
    const Node** slot = find(node);
    if (*slot) return false;
    *slot = node;
    ++count_;
    return true;
  }
  bool contains(const Node* node) { return *find(node) != nullptr; }

 private:
  static constexpr size_t kSmall = 16;

  const Node** find(const Node* node) {
    const Node** slots = size_ == kSmall ? small_.data() : slots_.data();
    size_t i = node_slot(node, size_);
    while (slots[i] && slots[i] != node) i = (i + 1) & (size_ - 1);
    return slots + i;
  }
  void grow() {
    std::vector<const Node*> old(small_.begin(), small_.end());
    if (size_ > kSmall) old = std::move(slots_);
    size_ *= 4;
    slots_.assign(size_, nullptr);
    for (const Node* node : old)
      if (node) *find(node) = node;
  }

  std::array<const Node*, kSmall> small_{};
  std::vector<const Node*> slots_;
  size_t size_ = kSmall, count_ = 0;
};

/// A map, which keeps its keys alive.
template <typename Value>
class NodeMap {
 public:
  /// Null where there is none. Valid until the next insertion.
  const Value* find(const Node* node) const {
    if (slots_.empty()) return nullptr;
    const Slot& slot = slots_[place(node)];
    return slot.key ? &slot.value : nullptr;
  }
  void insert_or_assign(const NodePtr& key, Value value) {
    if (count_ * 2 >= slots_.size()) grow();
    Slot& slot = slots_[place(key.get())];
    if (!slot.key) {
      slot.key = key;
      ++count_;
    }
    slot.value = std::move(value);
  }

 private:
  static constexpr size_t kFirst = 16;

  struct Slot {
    NodePtr key;  // null: free
    Value value;
  };

  size_t place(const Node* node) const {
    size_t i = node_slot(node, slots_.size());
    while (slots_[i].key && slots_[i].key.get() != node) i = (i + 1) & (slots_.size() - 1);
    return i;
  }
  void grow() {
    std::vector<Slot> old = std::exchange(slots_, {});
    slots_.resize(old.empty() ? kFirst : old.size() * 4);
    for (Slot& slot : old)
      if (slot.key) slots_[place(slot.key.get())] = std::move(slot);
  }

  std::vector<Slot> slots_;
  size_t count_ = 0;
};

}  // namespace tenon
