#include "tenon/backend/llvm/constants.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace tenon::llvm_backend {

void stream_constants(
    const ConstantsLayout& layout,
    const std::function<void(int64_t offset, std::span<const std::byte> bytes)>& sink) {
  static constexpr int64_t kPiece = 1 << 20;
  std::vector<std::byte> piece;
  for (const ConstantsLayout::Item& item : layout.items) {
    const int64_t bytes = item.data->bytes();
    if (!item.data->is_splat()) {
      sink(item.offset, item.data->data());
      continue;
    }
    const auto element = item.data->splat_element();
    const auto width = static_cast<int64_t>(element.size());
    if (bytes == 0) continue;
    piece.resize(static_cast<size_t>(std::min(bytes, kPiece / width * width)));
    for (size_t at = 0; at < piece.size(); at += element.size())
      std::memcpy(piece.data() + at, element.data(), element.size());
    for (int64_t at = 0; at < bytes; at += static_cast<int64_t>(piece.size()))
      sink(item.offset + at,
           std::span(piece).first(std::min(piece.size(), static_cast<size_t>(bytes - at))));
  }
}

}  // namespace tenon::llvm_backend
