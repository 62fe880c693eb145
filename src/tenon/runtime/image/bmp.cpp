// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cstdlib>

#include "tenon/runtime/image/image.h"

namespace tenon::image {

namespace {

class Reader {
 public:
  explicit Reader(Bytes bytes) : bytes_(bytes) {}
  bool has(uint64_t at, uint64_t count) const {
    return at <= bytes_.size() && count <= bytes_.size() - at;
  }
  uint32_t little(uint64_t at, int count) const {
    uint32_t value = 0;
    for (int i = count; has(at, static_cast<uint64_t>(count)) && i-- > 0;)
      value = value << 8 | bytes_[at + static_cast<uint64_t>(i)];
    return value;
  }
  uint8_t byte(uint64_t at) const { return has(at, 1) ? bytes_[at] : 0; }

 private:
  Bytes bytes_;
};

// A colour's bits of a pixel, as 8.
uint8_t component(uint32_t pixel, uint32_t mask) {
  if (mask == 0) return 0;
  const int shift = std::countr_zero(mask);
  const uint64_t most = mask >> shift, value = (pixel & mask) >> shift;
  return static_cast<uint8_t>((value * 255 + most / 2) / most);
}

struct Header {
  uint64_t pixels, palette, colours;
  int64_t width, height;
  bool bottom_first;
  uint32_t bits, compression, entry;
  uint32_t masks[3];
};

std::optional<Header> header_of(const Reader& in) {
  const uint32_t size = in.little(14, 4);
  Header h{};
  h.pixels = in.little(10, 4);
  if (size == 12) {
    h.width = in.little(18, 2);
    h.height = in.little(20, 2);
    h.bits = in.little(24, 2);
    h.bottom_first = true;
  } else if (size >= 40 && in.has(14, 40)) {
    h.width = static_cast<int32_t>(in.little(18, 4));
    h.height = static_cast<int32_t>(in.little(22, 4));
    h.bottom_first = h.height > 0;
    h.height = std::abs(h.height);
    h.bits = in.little(28, 2);
    h.compression = in.little(30, 4);
    h.colours = in.little(46, 4);
  } else {
    return std::nullopt;
  }
  h.entry = size == 12 ? 3 : 4;
  // Masks stand behind a header of 40 bytes, or in a longer one.
  h.palette = 14 + uint64_t{size} + (h.compression == 3 && size == 40 ? 12 : 0);
  const bool has_masks = h.compression == 3 || h.compression == 6;
  for (uint32_t k = 0; k < 3; ++k)
    h.masks[k] = has_masks      ? in.little(54 + 4 * k, 4)
                 : h.bits == 16 ? uint32_t{0x1f} << (5 * (2 - k))
                                : uint32_t{0xff} << (8 * (2 - k));
  if (h.colours == 0 && h.bits <= 8) h.colours = uint64_t{1} << h.bits;
  const bool known =
      h.bits == 1 || h.bits == 4 || h.bits == 8 || h.bits == 16 || h.bits == 24 || h.bits == 32;
  if (!known || (h.compression != 0 && !(has_masks && (h.bits == 16 || h.bits == 32))))
    return std::nullopt;
  return h;
}

}  // namespace

std::optional<Image> decode_bmp(Bytes bytes) {
  const Reader in(bytes);
  const auto h = header_of(in);
  if (!h) return std::nullopt;
  if (h->width < 1 || h->height < 1 || h->width > (1 << 27)) return std::nullopt;
  const uint64_t stride = (static_cast<uint64_t>(h->width) * h->bits + 31) / 32 * 4;
  if (!in.has(h->pixels, stride * static_cast<uint64_t>(h->height))) return std::nullopt;
  auto image = blank(h->height, h->width);
  if (!image) return std::nullopt;
  for (int64_t y = 0; y < h->height; ++y) {
    const uint64_t row =
        h->pixels + stride * static_cast<uint64_t>(h->bottom_first ? h->height - 1 - y : y);
    for (int64_t x = 0; x < h->width; ++x) {
      uint8_t* out = image->at(y, x);
      const uint64_t bit = static_cast<uint64_t>(x) * h->bits;
      if (h->bits <= 8) {
        const uint32_t shift = 8 - h->bits - static_cast<uint32_t>(bit % 8);
        const uint32_t index = in.byte(row + bit / 8) >> shift & ((1U << h->bits) - 1);
        if (index >= h->colours) return std::nullopt;
        const uint64_t colour = h->palette + uint64_t{index} * h->entry;
        for (uint64_t k = 0; k < 3; ++k) out[k] = in.byte(colour + 2 - k);
      } else {
        const uint32_t pixel = in.little(row + bit / 8, static_cast<int>(h->bits / 8));
        for (int k = 0; k < 3; ++k) out[k] = component(pixel, h->masks[k]);
      }
    }
  }
  return image;
}

}  // namespace tenon::image
