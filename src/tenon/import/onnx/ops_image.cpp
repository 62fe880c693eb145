// SPDX-License-Identifier: Apache-2.0
// Images of another size.
#include <algorithm>
#include <cmath>

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
  if (moved.size() > 2) unsupported("more than two axes that change");
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

std::vector<int64_t> static_shape(Context& c) {
  const auto shape = as_ints(c.shape(0));
  if (!shape) unsupported("a tensor with symbolic dimensions");
  return *shape;
}

void scale_by(Context& c, Resize& r, const std::vector<double>& scales,
              const std::vector<int64_t>& axes) {
  if (scales.size() != axes.size())
    c.bad(kShapeMismatch, "`{}` has {} scales for {} axes", c.node().op_type, scales.size(),
          axes.size());
  for (size_t k = 0; k < axes.size(); ++k) {
    const auto d = static_cast<size_t>(axes[k]);
    const double extent = std::floor(static_cast<double>(r.in[d]) * scales[k]);
    if (!(scales[k] > 0) || !(extent < 1e9))
      c.bad(kBadArgument, "`{}` by a factor of {}", c.node().op_type, scales[k]);
    r.scales[d] = scales[k];
    r.out[d] = static_cast<int64_t>(extent);
  }
}

Resize start(Context& c) {
  Resize r;
  r.in = static_shape(c);
  r.out = r.in;
  r.scales.assign(r.in.size(), 1.0);
  r.mode = c.string_attr("mode", "nearest");
  if (r.mode == "bilinear") r.mode = "linear";
  return r;
}

std::vector<int64_t> all_axes(const Resize& r) {
  std::vector<int64_t> axes;
  for (size_t d = 0; d < r.in.size(); ++d) axes.push_back(static_cast<int64_t>(d));
  return axes;
}

Results convert_upsample(Context& c) {
  Resize r = start(c);
  r.coordinates = "asymmetric";
  r.rounding = "floor";
  scale_by(c, r, c.opset() < 9 ? c.floats_attr("scales", {}) : c.floats(1, "scales"), all_axes(r));
  return {resize(c, r)};
}

Results convert_resize(Context& c) {
  Resize r = start(c);
  if (c.opset() < 11) {
    r.coordinates = "asymmetric";
    r.rounding = "floor";
    scale_by(c, r, c.floats(1, "scales"), all_axes(r));
    return {resize(c, r)};
  }
  c.ignore({"extrapolation_value"});
  r.coordinates = c.string_attr("coordinate_transformation_mode", "half_pixel");
  r.rounding = c.string_attr("nearest_mode", "round_prefer_floor");
  r.cubic = c.float_attr("cubic_coeff_a", -0.75);
  r.excludes_outside = c.flag_attr("exclude_outside");
  if (r.coordinates == "tf_crop_and_resize" || r.coordinates == "tf_half_pixel_for_nn")
    unsupported("coordinate_transformation_mode `{}`", r.coordinates);
  if (c.flag_attr("antialias")) unsupported("antialias");
  const std::string policy = c.string_attr("keep_aspect_ratio_policy", "stretch");
  std::vector<int64_t> axes = all_axes(r);
  if (c.has_attr("axes")) axes = c.axes(c.ints_attr("axes"), c.ndim(0));
  // An empty operand counts as left out.
  const bool scaled = c.has(2) && !(c.constant(2) && c.constant(2)->elements() == 0);
  if (scaled) {
    scale_by(c, r, c.floats(2, "scales"), axes);
    return {resize(c, r)};
  }
  if (!c.has(3)) c.bad(kBadModel, "`Resize` has neither scales nor sizes");
  const std::vector<int64_t> sizes = c.ints(3, "sizes");
  if (sizes.size() != axes.size())
    c.bad(kShapeMismatch, "`Resize` has {} sizes for {} axes", sizes.size(), axes.size());
  double common = 0;
  for (size_t k = 0; k < axes.size(); ++k) {
    const auto d = static_cast<size_t>(axes[k]);
    if (sizes[k] < 0 || r.in[d] < 1)
      c.bad(kBadArgument, "`Resize` of an axis of {} to {} elements", r.in[d], sizes[k]);
    r.out[d] = sizes[k];
    r.scales[d] = static_cast<double>(sizes[k]) / static_cast<double>(r.in[d]);
    const bool first = k == 0;
    if (policy == "not_larger") common = first ? r.scales[d] : std::min(common, r.scales[d]);
    if (policy == "not_smaller") common = first ? r.scales[d] : std::max(common, r.scales[d]);
  }
  for (const int64_t a : axes) {
    if (policy == "stretch") break;
    const auto d = static_cast<size_t>(a);
    r.scales[d] = common;
    r.out[d] = static_cast<int64_t>(std::floor(common * static_cast<double>(r.in[d]) + 0.5));
  }
  return {resize(c, r)};
}

}  // namespace

std::vector<OperatorRow> image_rows() {
  return {
      {"Resize", 10, 1, 4, convert_resize, "numbers (nearest), floats",
       "scales or sizes known at compile time, static shape, at most two axes that change; no "
       "antialias, no tf_crop_and_resize"},
      {"Upsample", 7, 1, 2, convert_upsample, "numbers (nearest), floats",
       "scales known at compile time, static shape, at most two axes that change"},
  };
}

}  // namespace tenon::onnx
