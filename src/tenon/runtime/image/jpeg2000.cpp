// SPDX-License-Identifier: Apache-2.0
#include <openjpeg.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "tenon/runtime/image/image.h"

namespace tenon::image {

namespace {

struct Source {
  Bytes bytes;
  uint64_t at = 0;
};
constexpr auto kEnd = static_cast<OPJ_SIZE_T>(-1);

OPJ_SIZE_T read(void* to, OPJ_SIZE_T count, void* handle) {
  auto& source = *static_cast<Source*>(handle);
  const uint64_t n = std::min<uint64_t>(count, source.bytes.size() - source.at);
  if (n == 0) return kEnd;
  std::memcpy(to, source.bytes.data() + source.at, n);
  source.at += n;
  return n;
}
OPJ_OFF_T skip(OPJ_OFF_T count, void* handle) {
  auto& source = *static_cast<Source*>(handle);
  if (count < 0) return -1;
  const uint64_t n =
      std::min<uint64_t>(static_cast<uint64_t>(count), source.bytes.size() - source.at);
  source.at += n;
  return n > 0 || count == 0 ? static_cast<OPJ_OFF_T>(n) : -1;
}
OPJ_BOOL seek(OPJ_OFF_T at, void* handle) {
  auto& source = *static_cast<Source*>(handle);
  if (at < 0 || static_cast<uint64_t>(at) > source.bytes.size()) return OPJ_FALSE;
  source.at = static_cast<uint64_t>(at);
  return OPJ_TRUE;
}

using Codec = std::unique_ptr<opj_codec_t, decltype(&opj_destroy_codec)>;
using Stream = std::unique_ptr<opj_stream_t, decltype(&opj_stream_destroy)>;
using Picture = std::unique_ptr<opj_image_t, decltype(&opj_image_destroy)>;

// The sample of a component at a pixel, as 8 bits.
int sample(const opj_image_comp_t& part, int64_t y, int64_t x) {
  const int64_t row = std::min<int64_t>(y / part.dy, int64_t{part.h} - 1);
  const int64_t column = std::min<int64_t>(x / part.dx, int64_t{part.w} - 1);
  int64_t value = part.data[row * part.w + column];
  if (part.sgnd != 0) value += int64_t{1} << (part.prec - 1);
  const int64_t most = (int64_t{1} << part.prec) - 1;
  value = std::clamp<int64_t>(value, 0, most);
  if (part.prec > 8) return static_cast<int>(value >> (part.prec - 8));
  return static_cast<int>((value * 255 + most / 2) / most);
}

uint8_t held(double value) {
  return static_cast<uint8_t>(std::clamp(std::floor(value + 0.5), 0.0, 255.0));
}

std::optional<Image> pixels_of(const opj_image_t& picture, int64_t height, int64_t width) {
  const size_t parts = picture.numcomps >= 3 ? 3 : 1;
  for (size_t k = 0; k < parts; ++k) {
    const opj_image_comp_t& part = picture.comps[k];
    if (part.data == nullptr || part.w == 0 || part.h == 0 || part.dx == 0 || part.dy == 0 ||
        part.prec < 1 || part.prec > 31)
      return std::nullopt;
  }
  auto image = blank(height, width);
  const bool is_luma = parts == 3 && picture.color_space == OPJ_CLRSPC_SYCC;
  for (int64_t y = 0; image && y < height; ++y)
    for (int64_t x = 0; x < width; ++x) {
      uint8_t* out = image->at(y, x);
      int values[3];
      for (size_t k = 0; k < 3; ++k) values[k] = sample(picture.comps[parts == 3 ? k : 0], y, x);
      const double luma = values[0], blue = values[1] - 128, red = values[2] - 128;
      for (size_t k = 0; k < 3; ++k) out[k] = static_cast<uint8_t>(values[k]);
      if (!is_luma) continue;
      out[0] = held(luma + 1.402 * red);
      out[1] = held(luma - 0.344136 * blue - 0.714136 * red);
      out[2] = held(luma + 1.772 * blue);
    }
  return image;
}

}  // namespace

std::optional<Image> decode_jpeg2000(Bytes bytes) {
  Source source{bytes};
  const bool is_plain = bytes[0] == 0xff;  // a codestream without boxes
  const Codec codec(opj_create_decompress(is_plain ? OPJ_CODEC_J2K : OPJ_CODEC_JP2),
                    opj_destroy_codec);
  const Stream stream(opj_stream_default_create(OPJ_TRUE), opj_stream_destroy);
  if (!codec || !stream) return std::nullopt;
  opj_stream_set_user_data(stream.get(), &source, nullptr);
  opj_stream_set_user_data_length(stream.get(), bytes.size());
  opj_stream_set_read_function(stream.get(), read);
  opj_stream_set_skip_function(stream.get(), skip);
  opj_stream_set_seek_function(stream.get(), seek);
  opj_dparameters_t parameters;
  opj_set_default_decoder_parameters(&parameters);
  if (opj_setup_decoder(codec.get(), &parameters) == OPJ_FALSE) return std::nullopt;
  opj_image_t* read_image = nullptr;
  const bool has_header = opj_read_header(stream.get(), codec.get(), &read_image) != OPJ_FALSE;
  const Picture picture(read_image, opj_image_destroy);
  if (!has_header || !picture || picture->x1 <= picture->x0 || picture->y1 <= picture->y0 ||
      picture->numcomps < 1 || picture->numcomps > 4)
    return std::nullopt;
  const int64_t width = int64_t{picture->x1} - picture->x0,
                height = int64_t{picture->y1} - picture->y0;
  // Before anything of this size is allocated. No code is that short.
  if (width > (1 << 20) || height > (1 << 20) || width * height > (1 << 27) ||
      width * height / 65536 > static_cast<int64_t>(bytes.size()))
    return std::nullopt;
  if (opj_decode(codec.get(), stream.get(), picture.get()) == OPJ_FALSE ||
      opj_end_decompress(codec.get(), stream.get()) == OPJ_FALSE)
    return std::nullopt;
  return pixels_of(*picture, height, width);
}

}  // namespace tenon::image
