// SPDX-License-Identifier: Apache-2.0
#include <png.h>

#include "tenon/runtime/image/image.h"

namespace tenon::image {

std::optional<Image> decode_png(Bytes bytes) {
  png_image file{};
  file.version = PNG_IMAGE_VERSION;
  std::optional<Image> image;
  std::vector<uint8_t> raw;
  if (png_image_begin_read_from_memory(&file, bytes.data(), bytes.size()) != 0) {
    image = blank(file.height, file.width);
    file.format = PNG_FORMAT_RGBA;
    file.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
    if (image) {
      raw.resize(image->pixels.size() / 3 * 4);
      if (png_image_finish_read(&file, nullptr, raw.data(), 0, nullptr) == 0 ||
          file.warning_or_error >= PNG_IMAGE_ERROR)
        image.reset();
    }
  }
  png_image_free(&file);
  // What is transparent has its colour.
  for (size_t i = 0; image && i < raw.size() / 4; ++i)
    for (size_t k = 0; k < 3; ++k) image->pixels[i * 3 + k] = raw[i * 4 + k];
  return image;
}

}  // namespace tenon::image
