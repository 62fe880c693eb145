// SPDX-License-Identifier: Apache-2.0
// PBM, PGM and PPM, as text and as bytes.
#include "tenon/runtime/image/image.h"

namespace tenon::image {

namespace {

class Reader {
 public:
  explicit Reader(Bytes bytes) : bytes_(bytes), at_(2) {}

  std::optional<uint32_t> number() {
    skip_space();
    if (at_ >= bytes_.size() || !is_digit(bytes_[at_])) return std::nullopt;
    uint64_t value = 0;
    for (; at_ < bytes_.size() && is_digit(bytes_[at_]); ++at_) {
      value = value * 10 + (bytes_[at_] - uint8_t{'0'});
      if (value > UINT32_MAX) return std::nullopt;
    }
    return static_cast<uint32_t>(value);
  }
  // One of "0" and "1", perhaps without space between them.
  std::optional<uint32_t> bit() {
    skip_space();
    if (at_ >= bytes_.size() || (bytes_[at_] != '0' && bytes_[at_] != '1')) return std::nullopt;
    return bytes_[at_++] - uint32_t{'0'};
  }
  /// What lies behind the one space that ends the header.
  Bytes rest() const { return at_ < bytes_.size() ? bytes_.subspan(at_ + 1) : Bytes(); }

 private:
  static bool is_digit(uint8_t c) { return c >= '0' && c <= '9'; }
  void skip_space() {
    for (; at_ < bytes_.size(); ++at_) {
      const uint8_t c = bytes_[at_];
      if (c == '#')
        while (at_ + 1 < bytes_.size() && bytes_[at_] != '\n') ++at_;
      else if (c != ' ' && (c < '\t' || c > '\r'))
        return;
    }
  }

  Bytes bytes_;
  size_t at_;
};

}  // namespace

std::optional<Image> decode_pnm(Bytes bytes) {
  if (bytes.size() < 3) return std::nullopt;
  const int kind = bytes[1] - '0', form = (kind - 1) % 3;  // bits, greys, colours
  const bool is_text = kind <= 3;
  Reader in(bytes);
  const auto width = in.number(), height = in.number();
  const auto most = form == 0 ? std::optional<uint32_t>(1) : in.number();
  if (!width || !height || !most || *most < 1 || *most > 65535) return std::nullopt;
  const uint64_t samples = form == 2 ? 3 : 1, size = *most > 255 ? 2 : 1;
  const uint64_t stride =
      form == 0 ? (uint64_t{*width} + 7) / 8 : uint64_t{*width} * samples * size;
  const Bytes raw = is_text ? bytes : in.rest();
  // A text has a character at least for each sample.
  const uint64_t least = is_text ? uint64_t{*width} * samples : stride;
  if (*height > 0 && least > raw.size() / *height) return std::nullopt;
  auto image = blank(*height, *width);
  if (!image) return std::nullopt;
  for (int64_t y = 0; y < image->height; ++y)
    for (int64_t x = 0; x < image->width; ++x) {
      uint8_t* out = image->at(y, x);
      for (uint64_t k = 0; k < samples; ++k) {
        uint64_t value = 0;
        const uint64_t row = static_cast<uint64_t>(y) * stride, i = static_cast<uint64_t>(x);
        if (is_text) {
          const auto number = form == 0 ? in.bit() : in.number();
          if (!number || *number > *most) return std::nullopt;
          value = *number;
        } else if (form == 0) {
          value = raw[row + i / 8] >> (7 - i % 8) & 1;
        } else {
          const uint64_t at = row + (i * samples + k) * size;
          value = size == 1 ? raw[at] : uint64_t{raw[at]} << 8 | raw[at + 1];
          if (value > *most) return std::nullopt;
        }
        if (form == 0) value = 1 - value;  // 1 is black
        out[k] = static_cast<uint8_t>((value * 255 + *most / 2) / *most);
      }
      if (samples == 1) out[1] = out[2] = out[0];
    }
  return image;
}

}  // namespace tenon::image
