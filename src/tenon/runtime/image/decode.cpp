// SPDX-License-Identifier: Apache-2.0
// Which format bytes are of, and the two functions that programs call.
#include <algorithm>
#include <cstring>
#include <new>
#include <string_view>

#include "tenon/runtime/abi.h"
#include "tenon/runtime/dltensor.h"
#include "tenon/runtime/image/image.h"

namespace tenon::image {

std::optional<Image> blank(int64_t height, int64_t width) {
  constexpr int64_t kMostPixels = int64_t{1} << 27;
  if (height < 1 || width < 1 || height > kMostPixels / width) return std::nullopt;
  Image image{height, width, {}};
  image.pixels.resize(static_cast<size_t>(height * width) * 3);
  return image;
}

std::optional<Image> decode(Bytes bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto begins = [&](std::string_view with, size_t at = 0) {
    return text.size() >= at + with.size() && text.substr(at, with.size()) == with;
  };
  using namespace std::string_view_literals;
  if (begins("\xff\xd8\xff"sv)) return decode_jpeg(bytes);
  if (begins("\x89PNG\r\n\x1a\n"sv)) return decode_png(bytes);
  if (begins("BM"sv)) return decode_bmp(bytes);
  if (begins("RIFF"sv) && begins("WEBP"sv, 8)) return decode_webp(bytes);
  if (begins("II*\0"sv) || begins("MM\0*"sv) || begins("II+\0"sv) || begins("MM\0+"sv))
    return decode_tiff(bytes);
  if (begins("\0\0\0\x0cjP  \r\n\x87\n"sv) || begins("\xff\x4f\xff\x51"sv))
    return decode_jpeg2000(bytes);
  if (text.size() > 2 && text[0] == 'P' && text[1] >= '1' && text[1] <= '6')
    return decode_pnm(bytes);
  return std::nullopt;
}

namespace {

// What was decoded for its size is kept for the call that wants the pixels.
struct Last {
  std::vector<uint8_t> bytes;
  Image image;
};
thread_local std::optional<Last> last;

const DLTensor& tensor(const TenonValue& value) {
  return *static_cast<const DLTensor*>(value.pointer);
}
template <typename T>
T* data(const DLTensor& of) {
  return reinterpret_cast<T*>(static_cast<char*>(of.data) + of.byte_offset);
}
Bytes bytes_of(const DLTensor& of) {
  return {data<const uint8_t>(of), static_cast<size_t>(of.shape[0])};
}

std::optional<Image> decoded(Bytes bytes) {
  try {
    return decode(bytes);
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  }
}

enum Format : int64_t { kRgb, kBgr, kGrey };

void write(const Image& image, int64_t format, uint8_t* out) {
  for (size_t i = 0; i < image.pixels.size(); i += 3) {
    const uint8_t* pixel = image.pixels.data() + i;
    if (format == kGrey) {
      // Weights of ITU-R BT.601 in 65536ths.
      *out++ = static_cast<uint8_t>(
          (pixel[0] * 19595U + pixel[1] * 38470U + pixel[2] * 7471U + 0x8000U) >> 16);
      continue;
    }
    for (size_t k = 0; k < 3; ++k) *out++ = pixel[format == kBgr ? 2 - k : k];
  }
}

}  // namespace

}  // namespace tenon::image

using tenon::image::Bytes;

/// Of (bytes): height and width, 0 where they are no image.
extern "C" __attribute__((visibility("default"))) int32_t
tenon_image_decode_size(TenonValue* args, int32_t*, int32_t, TenonValue* results, int32_t*, void*) {
  using namespace tenon::image;
  const Bytes bytes = bytes_of(tensor(args[0]));
  auto* size = data<int64_t>(tensor(results[0]));
  size[0] = size[1] = 0;
  last.reset();
  try {
    auto image = decoded(bytes);
    if (!image) return TENON_OK;
    size[0] = image->height;
    size[1] = image->width;
    last.emplace(Last{{bytes.begin(), bytes.end()}, std::move(*image)});
  } catch (const std::bad_alloc&) {
    last.reset();  // it is decoded again
  }
  return TENON_OK;
}

/// Of (bytes, format): the pixels, of the size that tenon_image_decode_size gave.
extern "C" __attribute__((visibility("default"))) int32_t tenon_image_decode(TenonValue* args,
                                                                             int32_t*, int32_t,
                                                                             TenonValue* results,
                                                                             int32_t*, void*) {
  using namespace tenon::image;
  const Bytes bytes = bytes_of(tensor(args[0]));
  const DLTensor& out = tensor(results[0]);
  if (out.shape[0] == 0 || out.shape[1] == 0) return TENON_OK;
  std::optional<Image> image;
  if (last && std::ranges::equal(last->bytes, bytes))
    image = std::move(last->image);
  else
    image = decoded(bytes);
  last.reset();
  if (!image || image->height != out.shape[0] || image->width != out.shape[1])
    return TENON_ERROR_VALUE;
  write(*image, args[1].integer, data<uint8_t>(out));
  return TENON_OK;
}
