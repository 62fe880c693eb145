// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/constants.h"

#include <algorithm>
#include <cstring>

#include "tenon/backend/constant_pieces.h"
#include "tenon/ir/text_constant.h"
#include "tenon/support/content_hash.h"
#include "tenon/support/limit_codes.h"
#include "tenon/support/mapped_pages.h"
#include "tenon/support/pages.h"

namespace tenon::backend {

std::string outline_of(const TensorData& data) {
  constexpr int64_t kStart = 4096;
  if (data.dtype.is_string() || data.bytes() <= kStart) return data.content_hash();
  const std::string head = data.dtype.str() + str(data.shape) + (data.is_splat() ? "*" : "");
  return content_hash(head, data.is_splat() ? data.splat_element() : data.data().first(kStart));
}

size_t ConstantsBuilder::index_of(const Ref<TensorData>& data, int64_t alignment) {
  alignment = std::max(alignment, kConstantAlignment);
  const auto serves = [&](size_t index) { return layout_.items[index].alignment >= alignment; };
  if (const auto known = by_node_.find(data.get());
      known != by_node_.end() && serves(known->second))
    return known->second;
  // The shape does not matter to the bytes, but to the hash; equal shapes are the common case.
  std::vector<Placed>& alike = by_outline_[outline_of(*data)];
  const auto same = std::find_if(alike.rbegin(), alike.rend(), [&](const Placed& one) {
    return one.data->content_hash() == data->content_hash();
  });
  if (same != alike.rend() && serves(same->index)) return by_node_[data.get()] = same->index;
  // One number stands for all of a splat until here.
  constexpr int64_t kMostOfSplats = int64_t{4} << 30;
  if (data->is_splat() && data->bytes() > kMostOfSplats - splat_bytes_)
    throw CompileError(kTooMuchWork, {},
                       "a constant of shape {} and equal elements would take {} bytes of the "
                       "program; at most {} are accepted of all such constants",
                       str(data->shape), data->bytes(), kMostOfSplats);
  if (data->is_splat()) splat_bytes_ += data->bytes();
  const auto round_up = [](int64_t value, int64_t to) { return (value + to - 1) / to * to; };
  const bool has_pages = paged_ && data->bytes() >= TensorData::kPagedBytes;
  const int64_t offset = round_up(
      layout_.bytes, has_pages ? std::max(alignment, static_cast<int64_t>(kPageBytes)) : alignment);
  layout_.items.push_back({data->dtype.is_string() ? numbered(*data) : data, offset, alignment});
  layout_.bytes = offset + round_up(std::max<int64_t>(data->bytes(), 1), kConstantAlignment);
  align(alignment);
  alike.push_back({data, layout_.items.size() - 1});
  return by_node_[data.get()] = layout_.items.size() - 1;
}

// The elements as numbers of the program's own texts, in the order of first use.
Ref<TensorData> ConstantsBuilder::numbered(const TensorData& texts) {
  std::vector<int64_t> numbers;
  const auto number_of = [&](const std::string& text) {
    const auto [at, is_new] =
        by_text_.try_emplace(text, static_cast<int64_t>(layout_.texts.size()));
    if (is_new) layout_.texts.push_back(text);
    return at->second;
  };
  (void)number_of("");
  for (int64_t i = 0; i < texts.elements(); ++i) numbers.push_back(number_of(text_at(texts, i)));
  return TensorData::of(kInt64, texts.shape, numbers, texts.origin);
}

void stream_constant(
    const ConstantsLayout::Item& item,
    const std::function<void(int64_t offset, std::span<const std::byte> bytes)>& sink) {
  static constexpr int64_t kPiece = 1 << 20;
  static constexpr size_t kFilePiece = size_t{8} << 20;
  const int64_t bytes = item.data->bytes();
  if (!item.data->is_splat()) {
    // A piece of a mapped file is gone from memory before the next one comes.
    const auto all = item.data->data();
    for (size_t at = 0; at < all.size(); at += kFilePiece) {
      const auto piece = all.subspan(at, std::min(kFilePiece, all.size() - at));
      sink(item.offset + static_cast<int64_t>(at), piece);
      drop_mapped_pages(piece);
    }
    return;
  }
  const auto element = item.data->splat_element();
  const auto width = static_cast<int64_t>(element.size());
  if (bytes == 0) return;
  std::vector<std::byte> piece(static_cast<size_t>(std::min(bytes, kPiece / width * width)));
  for (size_t at = 0; at < piece.size(); at += element.size())
    std::memcpy(piece.data() + at, element.data(), element.size());
  for (int64_t at = 0; at < bytes; at += static_cast<int64_t>(piece.size()))
    sink(item.offset + at,
         std::span(piece).first(std::min(piece.size(), static_cast<size_t>(bytes - at))));
}

void stream_constants(
    const ConstantsLayout& layout,
    const std::function<void(int64_t offset, std::span<const std::byte> bytes)>& sink) {
  for (const ConstantsLayout::Item& item : layout.items) stream_constant(item, sink);
}

}  // namespace tenon::backend
