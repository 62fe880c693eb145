// SPDX-License-Identifier: Apache-2.0
#include <tiffio.h>

#include <algorithm>
#include <cstring>

#include "tenon/runtime/image/image.h"

namespace tenon::image {

namespace {

struct Source {
  Bytes bytes;
  uint64_t at = 0;
};

tmsize_t read(thandle_t handle, void* to, tmsize_t count) {
  auto& source = *static_cast<Source*>(handle);
  const uint64_t left = source.bytes.size() - std::min<uint64_t>(source.at, source.bytes.size());
  const uint64_t n = std::min<uint64_t>(static_cast<uint64_t>(std::max<tmsize_t>(count, 0)), left);
  if (n > 0) std::memcpy(to, source.bytes.data() + source.at, n);
  source.at += n;
  return static_cast<tmsize_t>(n);
}
tmsize_t write(thandle_t, void*, tmsize_t) { return 0; }
toff_t seek(thandle_t handle, toff_t offset, int whence) {
  auto& source = *static_cast<Source*>(handle);
  const uint64_t from = whence == SEEK_SET   ? 0
                        : whence == SEEK_CUR ? source.at
                                             : source.bytes.size();
  source.at = from + offset;
  return source.at;
}
int close(thandle_t) { return 0; }
toff_t size(thandle_t handle) { return static_cast<Source*>(handle)->bytes.size(); }
int no_message(TIFF*, void*, const char*, const char*, va_list) { return 1; }

}  // namespace

std::optional<Image> decode_tiff(Bytes bytes) {
  Source source{bytes};
  TIFFOpenOptions* options = TIFFOpenOptionsAlloc();
  if (options == nullptr) return std::nullopt;
  TIFFOpenOptionsSetErrorHandlerExtR(options, no_message, nullptr);
  TIFFOpenOptionsSetWarningHandlerExtR(options, no_message, nullptr);
  TIFFOpenOptionsSetMaxSingleMemAlloc(options, tmsize_t{1} << 30);
  TIFF* file = TIFFClientOpenExt("image", "rm", &source, read, write, seek, close, size, nullptr,
                                 nullptr, options);
  TIFFOpenOptionsFree(options);
  if (file == nullptr) return std::nullopt;
  uint32_t width = 0, height = 0;
  std::optional<Image> image;
  if (TIFFGetField(file, TIFFTAG_IMAGEWIDTH, &width) == 1 &&
      TIFFGetField(file, TIFFTAG_IMAGELENGTH, &height) == 1)
    image = blank(height, width);
  std::vector<uint32_t> raw(image ? image->pixels.size() / 3 : 0);
  if (image &&
      TIFFReadRGBAImageOriented(file, width, height, raw.data(), ORIENTATION_TOPLEFT, 1) != 1)
    image.reset();
  TIFFClose(file);
  for (size_t i = 0; image && i < raw.size(); ++i) {
    image->pixels[i * 3] = TIFFGetR(raw[i]);
    image->pixels[i * 3 + 1] = TIFFGetG(raw[i]);
    image->pixels[i * 3 + 2] = TIFFGetB(raw[i]);
  }
  return image;
}

}  // namespace tenon::image
