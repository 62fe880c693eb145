// SPDX-License-Identifier: Apache-2.0
// Pictures from the bytes of files. The library stands alone (libtenon_image.so): the runtime opens
// it when a program decodes pictures. Bytes are hostile: a decoder gives an image or nothing, and
// allocates nothing by a size that limits() has not seen.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tenon::image {

using Bytes = std::span<const uint8_t>;

/// Rows of pixels: red, green, blue.
struct Image {
  int64_t height = 0, width = 0;
  std::vector<uint8_t> pixels;

  uint8_t* at(int64_t row, int64_t column) { return pixels.data() + (row * width + column) * 3; }
};

/// An image of this size, of zeros; nothing where a side is not positive or there are more than 2^27
/// pixels.
std::optional<Image> blank(int64_t height, int64_t width);

/// An image of any format; nothing where the bytes are none, are cut off or damaged.
std::optional<Image> decode(Bytes bytes);

std::optional<Image> decode_bmp(Bytes bytes), decode_jpeg(Bytes bytes),
    decode_jpeg2000(Bytes bytes), decode_png(Bytes bytes), decode_pnm(Bytes bytes),
    decode_tiff(Bytes bytes), decode_webp(Bytes bytes);

}  // namespace tenon::image
