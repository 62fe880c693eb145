// SPDX-License-Identifier: Apache-2.0
#include <csetjmp>
#include <cstddef>
#include <cstdio>
// After <cstdio>, which it needs.
#include <jerror.h>
#include <jpeglib.h>

#include "tenon/runtime/image/image.h"

namespace tenon::image {

namespace {

constexpr int kMostScans = 256;  // of a progressive file; each goes over the whole image

struct Errors {
  jpeg_error_mgr base;
  std::jmp_buf back;
};

[[noreturn]] void leave(j_common_ptr info) {
  std::longjmp(reinterpret_cast<Errors*>(info->err)->back, 1);
}
// libjpeg fills what is missing with grey, and says so.
void warned(j_common_ptr info, int level) {
  if (level < 0 && info->err->msg_code == JWRN_JPEG_EOF) leave(info);
}
void watch_scans(j_common_ptr info) {
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number > kMostScans) leave(info);
}

// Colours of ink as light. Adobe's files have them inverted.
void from_ink(uint8_t* out, const uint8_t* ink, bool inverted) {
  for (int k = 0; k < 3; ++k) {
    const unsigned colour = inverted ? ink[k] : 255U - ink[k];
    const unsigned black = inverted ? ink[3] : 255U - ink[3];
    out[k] = static_cast<uint8_t>((colour * black + 127) / 255);
  }
}

// No object with a destructor lives where an error may jump over it.
struct Decoder {
  jpeg_decompress_struct info;
  Errors errors;
  jpeg_progress_mgr progress;

  bool begin(Bytes bytes) {
    info.err = jpeg_std_error(&errors.base);
    errors.base.error_exit = leave;
    errors.base.emit_message = warned;
    errors.base.output_message = [](j_common_ptr) {};
    jpeg_create_decompress(&info);
    if (setjmp(errors.back) != 0) return false;
    progress.progress_monitor = watch_scans;
    info.progress = &progress;
    info.mem->max_memory_to_use = 1L << 30;
    jpeg_mem_src(&info, bytes.data(), bytes.size());
    if (jpeg_read_header(&info, TRUE) != JPEG_HEADER_OK) return false;
    const bool is_ink = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
    info.out_color_space = is_ink ? JCS_CMYK : JCS_RGB;
    return true;
  }
  /// \param row  room for four samples of each pixel of a row
  bool read(uint8_t* pixels, uint8_t* row) {
    if (setjmp(errors.back) != 0) return false;
    jpeg_start_decompress(&info);
    const size_t width = info.output_width;
    const bool is_ink = info.out_color_space == JCS_CMYK;
    if (info.output_components != (is_ink ? 4 : 3)) return false;
    while (info.output_scanline < info.output_height) {
      uint8_t* to = pixels + size_t{info.output_scanline} * width * 3;
      JSAMPROW rows[1] = {is_ink ? row : to};
      if (jpeg_read_scanlines(&info, rows, 1) != 1) return false;
      for (size_t x = 0; is_ink && x < width; ++x)
        from_ink(to + x * 3, row + x * 4, info.saw_Adobe_marker != 0);
    }
    return jpeg_finish_decompress(&info) != 0;
  }
  void end() { jpeg_destroy_decompress(&info); }
};

}  // namespace

std::optional<Image> decode_jpeg(Bytes bytes) {
  Decoder decoder{};
  std::optional<Image> image;
  if (decoder.begin(bytes)) image = blank(decoder.info.image_height, decoder.info.image_width);
  if (image) {
    std::vector<uint8_t> row(static_cast<size_t>(image->width) * 4);
    if (!decoder.read(image->pixels.data(), row.data())) image.reset();
  }
  decoder.end();
  return image;
}

}  // namespace tenon::image
