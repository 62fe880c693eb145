// SPDX-License-Identifier: Apache-2.0
#include <webp/decode.h>

#include "tenon/runtime/image/image.h"

namespace tenon::image {

std::optional<Image> decode_webp(Bytes bytes) {
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(bytes.data(), bytes.size(), &features) != VP8_STATUS_OK ||
      features.has_animation != 0)
    return std::nullopt;
  auto image = blank(features.height, features.width);
  if (image && WebPDecodeRGBInto(bytes.data(), bytes.size(), image->pixels.data(),
                                 image->pixels.size(), features.width * 3) == nullptr)
    image.reset();
  return image;
}

}  // namespace tenon::image
