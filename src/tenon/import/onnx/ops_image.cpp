// SPDX-License-Identifier: Apache-2.0
// Images of another size.
#include <algorithm>
#include <cmath>

#include "tenon/arith/analyzer.h"
#include "tenon/import/onnx/operators.h"

namespace tenon::onnx {

namespace {

struct Resize {
  std::vector<int64_t> in, out;
  std::vector<double> scales;  // as given, or out / in
  std::string mode, coordinates, rounding;
  double cubic = -0.75;
  bool excludes_outside = false;
};

// At most two axes change: they are moved behind the others, which become channels.
Value resize(Context& c, const Resize& r) {
  std::vector<int64_t> kept, moved;
  for (size_t d = 0; d < r.in.size(); ++d) {
    const bool same = r.in[d] == r.out[d] && r.scales[d] == 1;
    (same ? kept : moved).push_back(static_cast<int64_t>(d));
  }
  if (moved.empty()) return c.value(0);
  while (moved.size() < 2 && !kept.empty()) {
    moved.insert(moved.begin(), kept.back());
    kept.pop_back();
  }
  std::sort(moved.begin(), moved.end());
  const bool line = moved.size() == 1;  // a tensor of rank 1
  std::vector<int64_t> perm = kept;
  perm.insert(perm.end(), moved.begin(), moved.end());
  int64_t channels = 1;
  Dims permuted;
  for (const int64_t d : kept) {
    channels *= r.in[static_cast<size_t>(d)];
    permuted.push_back(int64(r.in[static_cast<size_t>(d)]));
  }
  const auto at = [&](const auto& values, size_t i) {
    return values[static_cast<size_t>(moved[i])];
  };
  const int64_t rows = line ? 1 : at(r.in, 0), columns = at(r.in, line ? 0 : 1);
  const int64_t new_rows = line ? 1 : at(r.out, 0), new_columns = at(r.out, line ? 0 : 1);
  AttrList scales = {line ? 1.0 : at(r.scales, 0), at(r.scales, line ? 0 : 1)};
  Value x = c.reshape(c.transpose(c.value(0), perm), to_exprs({1, channels, rows, columns}));
  x = c.op("image.resize2d", {x, c.shape_value(to_exprs({new_rows, new_columns}))},
           {{"scales", scales},
            {"method", r.mode == "nearest" ? "nearest_neighbor" : r.mode},
            {"coordinate_transformation_mode", r.coordinates},
            {"rounding_method", r.rounding},
            {"cubic_alpha", r.cubic},
            {"cubic_exclude", r.excludes_outside ? 1 : 0}});
  for (size_t i = 0; i < moved.size(); ++i) permuted.push_back(int64(at(r.out, i)));
  std::vector<int64_t> back(perm.size());
  for (size_t d = 0; d < perm.size(); ++d)
    back[static_cast<size_t>(perm[d])] = static_cast<int64_t>(d);
  return c.transpose(c.reshape(x, permuted), back);
}

// What a Resize asks for, along some axes of any tensor.
struct Request {
  std::vector<int64_t> axes;
  Dims in, out;                // of all axes
  std::vector<double> scales;  // of `axes`; empty: the quotients of the sizes
  std::string mode, coordinates = "asymmetric", rounding = "floor";
  Value scales_value, roi_value;  // tensors, where only the run knows them
  double cubic = -0.75, extrapolation = 0;
  bool excludes_outside = false, antialias = false;

  const Expr& in_at(size_t k) const { return in[static_cast<size_t>(axes[k])]; }
  Expr& out_at(size_t k) { return out[static_cast<size_t>(axes[k])]; }
};

// floor(extent * scale). A scale is a float32: a whole number of 24 bits by a power of 2.
Expr scaled_extent(Context& c, const Expr& extent, double scale) {
  const auto known = as_int(extent);
  const double most = std::floor(static_cast<double>(known.value_or(1)) * scale);
  if (!(scale > 0) || !(most < 1e9)) c.bad(kBadArgument, "`{}` by a factor of {}", c.name(), scale);
  if (known) return int64(static_cast<int64_t>(most));
  int exponent = 0;
  auto numerator = static_cast<int64_t>(std::ldexp(std::frexp(scale, &exponent), 24));
  exponent -= 24;
  for (; exponent < 0 && numerator % 2 == 0; ++exponent) numerator /= 2;
  if (exponent < -40) unsupported("scale {} of a symbolic dimension", scale);
  if (exponent >= 0) return arith::simplify(extent * (numerator << exponent));
  return arith::simplify(floordiv(extent * numerator, int64_t{1} << -exponent));
}

void scale_by(Context& c, Request& r, std::vector<double> scales) {
  if (scales.size() != r.axes.size())
    c.bad(kShapeMismatch, "`{}` has {} scales for {} axes", c.name(), scales.size(), r.axes.size());
  for (size_t k = 0; k < scales.size(); ++k) r.out_at(k) = scaled_extent(c, r.in_at(k), scales[k]);
  r.scales = std::move(scales);
}

// The same where only the run knows the scales. What is no scale gives -1, which is refused.
void scale_by_value(Context& c, Request& r, const Value& scales) {
  const auto type = shaped(scales);
  const auto count = static_cast<int64_t>(r.axes.size());
  if (type->ndim != 1 || !is_int(type->dim(0), count))
    c.bad(kShapeMismatch, "operand `scales` of `{}` has shape {} for {} axes", c.name(),
          str(*type->shape), count);
  Elements extents{kInt64, {count}, {}};
  for (size_t k = 0; k < r.axes.size(); ++k) extents.values.push_back(r.in_at(k));
  const Value exact = c.cast(scales, kFloat64);
  const Value width = c.op("multiply", {exact, c.cast(c.materialise(extents), kFloat64)});
  const Value is_scale = c.op("logical_and", {c.op("greater", {exact, c.scalar(kFloat64, 0)}),
                                              c.op("less", {width, c.scalar(kFloat64, 1e12)})});
  const Value sizes = c.op("where", {is_scale, c.op("floor", {width}), c.scalar(kFloat64, -1)});
  const Dims numbers = c.numbers_of(c.cast(sizes, kInt64), "scales");
  for (const Expr& number : numbers)
    c.require(number >= int64(0), kBadArgument,
              fmt::format("a scale of `{}` is not positive, or too large", c.name()));
  for (size_t k = 0; k < r.axes.size(); ++k) r.out_at(k) = numbers[k];
  r.scales_value = scales;
}

// By operand `i`, which may be a constant.
void scale_by_operand(Context& c, Request& r, size_t i) {
  if (c.constant(i))
    scale_by(c, r, c.floats(i, "scales"));
  else
    scale_by_value(c, r, c.value(i));
}

// The same for sizes that are expressions: the axis with the least or greatest scale, as a quotient
// of integers, gives the scale of all.
void keep_symbolic_proportions(Context& c, Request& r, const Dims& sizes, bool larger) {
  Expr out = sizes[0], in = r.in_at(0);
  for (size_t k = 0; k < sizes.size(); ++k) {
    c.require(logical_and(sizes[k] < int64(int64_t{1} << 31),
                          logical_and(r.in_at(k) > int64(0), r.in_at(k) < int64(int64_t{1} << 31))),
              kBadArgument,
              "an extent or a size of `Resize` is too large, or there are no elements");
    const Expr mine = sizes[k] * in, best = out * r.in_at(k);
    const Expr is_better = larger ? mine > best : mine < best;
    const Expr next_out = select(is_better, sizes[k], out);
    in = arith::simplify(select(is_better, r.in_at(k), in));
    out = arith::simplify(next_out);
  }
  for (size_t k = 0; k < sizes.size(); ++k)
    r.out_at(k) = arith::simplify(floordiv(out * r.in_at(k) * int64(2) + in, in * int64(2)));
  const auto tensor = [&](const Expr& number) {
    return c.cast(c.materialise(Elements{kInt64, {1}, {number}}), kFloat64);
  };
  r.scales_value =
      c.op("broadcast_to", {c.op("divide", {tensor(out), tensor(in)}),
                            c.shape_value({int64(static_cast<int64_t>(sizes.size()))})});
}

// Sizes that keep the proportions of the axes, by the least or greatest of their scales.
void keep_proportions(Context& c, Request& r, const Dims& sizes, bool larger) {
  double common = 0;
  for (size_t k = 0; k < sizes.size(); ++k) {
    const auto in = as_int(r.in_at(k)), out = as_int(sizes[k]);
    if (!in || !out) return keep_symbolic_proportions(c, r, sizes, larger);
    const double scale = static_cast<double>(*out) / static_cast<double>(*in);
    common = k == 0 ? scale : larger ? std::max(common, scale) : std::min(common, scale);
  }
  r.scales.assign(sizes.size(), common);
  for (size_t k = 0; k < sizes.size(); ++k) {
    const auto extent = static_cast<double>(*as_int(r.in_at(k)));
    r.out_at(k) = int64(static_cast<int64_t>(std::floor(common * extent + 0.5)));
  }
}

void size_to(Context& c, Request& r, const Dims& sizes) {
  if (sizes.size() != r.axes.size())
    c.bad(kShapeMismatch, "`{}` has {} sizes for {} axes", c.name(), sizes.size(), r.axes.size());
  for (size_t k = 0; k < sizes.size(); ++k) {
    if (as_int(sizes[k]).value_or(0) < 0 || as_int(r.in_at(k)).value_or(1) < 1)
      c.bad(kBadArgument, "`{}` of an axis of {} to {} elements", c.name(), str(r.in_at(k)),
            str(sizes[k]));
    c.require(sizes[k] >= int64(0), kBadArgument,
              fmt::format("a size of `{}` is negative", c.name()));
    r.out_at(k) = sizes[k];
  }
}

// What `image.resize2d` does: images of known sizes, without the rarer modes.
std::optional<Resize> as_images(const Request& r, DType dtype) {
  const auto in = as_ints(r.in), out = as_ints(r.out);
  const bool blends = r.mode != "nearest";
  if (!in || !out || r.antialias || r.coordinates == "tf_crop_and_resize" ||
      r.coordinates == "tf_half_pixel_for_nn" || (blends && !dtype.is_float()))
    return std::nullopt;
  Resize images{*in,
                *out,
                std::vector<double>(in->size(), 1.0),
                r.mode,
                r.coordinates,
                r.rounding,
                r.cubic,
                r.excludes_outside};
  size_t moved = 0;
  for (size_t k = 0; k < r.axes.size(); ++k) {
    const auto d = static_cast<size_t>(r.axes[k]);
    const auto from = static_cast<double>((*in)[d]);
    images.scales[d] = !r.scales.empty() ? r.scales[k] : static_cast<double>((*out)[d]) / from;
    const double width = from * images.scales[d];
    if (r.coordinates == "align_corners" && width != std::floor(width)) return std::nullopt;
    if ((*in)[d] != (*out)[d] || images.scales[d] != 1) ++moved;
  }
  if (moved > 2) return std::nullopt;
  return images;
}

Value resize_any(Context& c, const Request& r, const std::vector<double>& roi) {
  const bool is_known = !r.scales_value && !r.roi_value;
  if (roi.empty() && is_known)
    if (const auto images = as_images(r, c.dtype(0))) return resize(c, *images);
  const bool has_region = r.coordinates == "tf_crop_and_resize";
  std::vector<int64_t> axes;
  Dims sizes;
  AttrList scales, starts, ends;
  for (size_t k = 0; k < r.axes.size(); ++k) {
    const auto d = static_cast<size_t>(r.axes[k]);
    const bool same = is_known && arith::proves_equal(r.in[d], r.out[d]) &&
                      (r.scales.empty() || r.scales[k] == 1) &&
                      (!has_region || (roi[k] == 0 && roi[r.axes.size() + k] == 1));
    if (same) continue;
    axes.push_back(r.axes[k]);
    sizes.push_back(r.out[d]);
    if (!r.scales.empty()) scales.push_back(r.scales[k]);
    if (!has_region || r.roi_value) continue;
    starts.push_back(roi[k]);
    ends.push_back(roi[r.axes.size() + k]);
  }
  if (axes.empty()) return c.value(0);
  Attrs attrs{{"axes", axes},
              {"method", r.mode == "nearest" ? "nearest_neighbor" : r.mode},
              {"coordinate_transformation_mode", r.coordinates},
              {"rounding_method", r.rounding},
              {"cubic_alpha", r.cubic},
              {"extrapolation_value", r.extrapolation},
              {"exclude_outside", r.excludes_outside},
              {"antialias", r.antialias}};
  if (!scales.empty()) attrs.set("scales", scales);
  if (has_region && !r.roi_value) {
    starts.insert(starts.end(), ends.begin(), ends.end());
    attrs.set("roi", starts);
  }
  std::vector<Value> args = {c.value(0), c.shape_value(sizes)};
  if (r.scales_value || r.roi_value)
    args.push_back(r.scales_value ? r.scales_value : make<graph::Tuple>(std::vector<Value>{}));
  if (r.roi_value) args.push_back(r.roi_value);
  return c.op("image.resize", args, attrs);
}

Request start(Context& c) {
  Request r;
  r.in = r.out = c.shape(0);
  for (int64_t d = 0; d < c.ndim(0); ++d) r.axes.push_back(d);
  r.mode = c.string_attr("mode", "nearest");
  if (r.mode == "bilinear") r.mode = "linear";
  if (r.mode != "nearest" && r.mode != "linear" && r.mode != "cubic")
    c.bad(kBadAttribute, "attribute `mode` of `{}` is `{}`; expected nearest, linear or cubic",
          c.name(), r.mode);
  return r;
}

Results convert_upsample(Context& c) {
  Request r = start(c);
  if (c.opset() >= 7) {
    if (c.opset() < 9)
      scale_by(c, r, c.floats_attr("scales", {}));
    else
      scale_by_operand(c, r, 1);
  } else {
    const double rows = c.float_attr("height_scale"), columns = c.float_attr("width_scale");
    if (r.axes.size() != 4)
      c.bad(kRankMismatch, "`Upsample` of a tensor of rank {}; expected 4", r.axes.size());
    scale_by(c, r, {1, 1, rows, columns});
  }
  return {resize_any(c, r, {})};
}

// An empty operand counts as left out.
bool is_given(Context& c, size_t i) {
  return c.has(i) && !(c.type(i)->ndim == 1 && is_int(c.shape(i)[0], 0));
}

Results convert_resize(Context& c) {
  Request r = start(c);
  if (c.opset() < 11) {
    scale_by_operand(c, r, 1);
    return {resize_any(c, r, {})};
  }
  r.coordinates = c.string_attr("coordinate_transformation_mode", "half_pixel");
  r.rounding = c.string_attr("nearest_mode", "round_prefer_floor");
  r.cubic = c.float_attr("cubic_coeff_a", -0.75);
  r.extrapolation = c.float_attr("extrapolation_value", 0);
  r.excludes_outside = c.flag_attr("exclude_outside");
  r.antialias = c.flag_attr("antialias") && r.mode != "nearest";
  const std::string policy = c.string_attr("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller")
    c.bad(kBadAttribute,
          "attribute `keep_aspect_ratio_policy` of `Resize` is `{}`; expected stretch, not_larger "
          "or not_smaller",
          policy);
  if (c.has_attr("axes")) r.axes = c.axes(c.ints_attr("axes"), c.ndim(0));
  std::vector<double> roi;
  if (r.coordinates == "tf_crop_and_resize") {
    if (!is_given(c, 1)) c.bad(kBadModel, "`Resize` by tf_crop_and_resize has no roi");
    const Expr count = c.shape(1)[0];
    if (!is_int(count, static_cast<int64_t>(2 * r.axes.size())))
      c.bad(kShapeMismatch, "operand `roi` of `Resize` has {} numbers for {} axes; expected {}",
            str(count), r.axes.size(), 2 * r.axes.size());
    if (c.constant(1))
      roi = c.floats(1, "roi");
    else
      r.roi_value = c.value(1);
  }
  if (is_given(c, 2)) {
    scale_by_operand(c, r, 2);
  } else if (c.has(3)) {
    const Dims sizes = c.dims(3, "sizes");
    size_to(c, r, sizes);
    if (policy != "stretch") keep_proportions(c, r, sizes, policy == "not_smaller");
  } else {
    c.bad(kBadModel, "`Resize` has neither scales nor sizes");
  }
  return {resize_any(c, r, roi)};
}

#ifdef TENON_HAVE_IMAGES
constexpr bool kHasDecoders = true;
#else
constexpr bool kHasDecoders = false;
#endif

Results convert_image_decoder(Context& c) {
  const std::string format = c.string_attr("pixel_format", "RGB");
  if (format != "RGB" && format != "BGR" && format != "Grayscale")
    c.bad(kBadAttribute,
          "attribute `pixel_format` of `ImageDecoder` is `{}`; expected RGB, BGR or Grayscale",
          format);
  if (!kHasDecoders) unsupported("a build without the libraries of picture formats");
  const Value encoded = c.value(0);
  const Dims size = c.numbers_of(c.op("image.decode_size", {encoded}), "size of the picture");
  c.require(logical_and(size[0] >= int64(0), size[1] >= int64(0)), kBadArgument,
            "a picture of a negative size");
  return {c.op("image.decode", {encoded, c.shape_value(size)}, {{"pixel_format", format}})};
}

}  // namespace

std::vector<OperatorRow> image_rows() {
  return {
      {"Resize", 10, 1, 4, convert_resize, "numbers (nearest: all)",
       "as many scales, sizes and numbers of roi as the model says"},
      {"ImageDecoder", 20, 1, 1, convert_image_decoder, "uint8", "animations"},
      {"Upsample", 1, 1, 2, convert_upsample, "numbers (nearest: all)",
       "as many scales as the model says"},
  };
}

}  // namespace tenon::onnx
