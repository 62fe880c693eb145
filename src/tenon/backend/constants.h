// SPDX-License-Identifier: Apache-2.0
// The constants of a program as one range of bytes: offsets, and contents piece by piece.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "tenon/ir/constant.h"

namespace tenon::backend {

/// Where each constant of a program lies from the base pointer that it is handed.
struct ConstantsLayout {
  struct Item {
    Ref<TensorData> data;
    int64_t offset;     // a multiple of its alignment
    int64_t alignment;  // at least kConstantAlignment
  };
  std::vector<Item> items;  // by offset
  int64_t bytes = 0;
  int64_t alignment = 64;          // of the whole: that of every item, or more
  std::vector<std::string> texts;  // whose numbers stand in constants of strings; the first is ""
};
inline constexpr int64_t kConstantAlignment = 64;

/// Of dtype, shape and the first elements: constants of equal content have equal outlines. Hashing
/// all of a program's weights takes as long as reading them.
std::string outline_of(const TensorData& data);

/// Lays out constants in the order of first use; equal content is kept once, but for what is asked
/// to be aligned more than before.
class ConstantsBuilder {
 public:
  /// \param paged  large constants begin at multiples of kPageBytes, so that their pages can move to
  ///               their place (TensorData::move_to); the whole is aligned no more for it
  explicit ConstantsBuilder(bool paged = false) : paged_(paged) {}
  /// Position in `items` of the layout. \throws CompileError (kTooMuchWork) where constants that
  /// are one number take more than 4 GiB.
  size_t index_of(const Ref<TensorData>& data, int64_t alignment = kConstantAlignment);
  int64_t offset_of(const Ref<TensorData>& data, int64_t alignment = kConstantAlignment) {
    return layout_.items[index_of(data, alignment)].offset;
  }
  /// The offset of a constant that index_of was given before.
  int64_t known_offset(const TensorData& data) const {
    return layout_.items[by_node_.at(&data)].offset;
  }
  /// Makes the whole a multiple of `alignment`.
  void align(int64_t alignment) { layout_.alignment = std::max(layout_.alignment, alignment); }
  const ConstantsLayout& layout() const { return layout_; }
  ConstantsLayout take() && { return std::move(layout_); }

 private:
  bool paged_;
  ConstantsLayout layout_;
  std::unordered_map<const Node*, size_t> by_node_;
  Ref<TensorData> numbered(const TensorData& texts);
  struct Placed {
    Ref<TensorData> data;
    size_t index;
  };
  std::map<std::string, std::vector<Placed>> by_outline_;  // in the order of first use
  std::unordered_map<std::string, int64_t> by_text_;
  int64_t splat_bytes_ = 0;
};

/// Calls `sink` with pieces in the order of their offsets; what lies between them is zero. Never
/// are all of them in memory at once.
void stream_constants(
    const ConstantsLayout& layout,
    const std::function<void(int64_t offset, std::span<const std::byte> bytes)>& sink);

}  // namespace tenon::backend
