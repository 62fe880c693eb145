// SPDX-License-Identifier: Apache-2.0
// Images sampled at places that are data, taken apart into blocks, cut and padded.
#include "tenon/arith/analyzer.h"
#include "tenon/import/onnx/operators.h"

namespace tenon::onnx {

namespace {

// `axes` of a tensor of `ndim`, with axis `from` moved to `to`.
std::vector<int64_t> moved_axis(int64_t ndim, int64_t from, int64_t to) {
  std::vector<int64_t> axes;
  for (int64_t d = 0; d < ndim; ++d)
    if (d != from) axes.push_back(d);
  axes.insert(axes.begin() + to, from);
  return axes;
}

std::vector<int64_t> sized(Context& c, const char* name, size_t count, int64_t otherwise) {
  std::vector<int64_t> values = c.ints_attr(name, std::vector<int64_t>(count, otherwise));
  if (values.size() != count)
    c.bad(kBadAttribute, "attribute `{}` of `{}` has {} numbers; expected {}", name, c.name(),
          values.size(), count);
  return values;
}

Results convert_grid_sample(Context& c) {
  std::string mode = c.string_attr("mode", c.opset() < 20 ? "bilinear" : "linear");
  if (c.opset() < 20 && (mode == "bilinear" || mode == "bicubic")) mode = mode.substr(2);
  if (mode != "linear" && mode != "nearest" && mode != "cubic")
    c.bad(kBadAttribute, "attribute `mode` of `GridSample` is `{}`; expected {}", mode,
          c.opset() < 20 ? "bilinear, nearest or bicubic" : "linear, nearest or cubic");
  // The places of an element lie last in ONNX, before the axes here.
  const Value grid = c.transpose(c.value(1), moved_axis(c.ndim(1), c.ndim(1) - 1, 1));
  return {c.op("image.grid_sample", {c.value(0), grid},
               {{"method", mode == "nearest" ? mode : "bi" + mode},
                {"padding_mode", c.string_attr("padding_mode", "zeros")},
                {"align_corners", c.flag_attr("align_corners")}})};
}

Results convert_affine_grid(Context& c) {
  const Dims size = c.dims(1, "size");
  if (size.size() != 4 && size.size() != 5)
    c.bad(kShapeMismatch, "operand `size` of `AffineGrid` has {} numbers; expected 4 or 5",
          size.size());
  if (!arith::proves_equal(size[0], c.shape(0)[0]) && as_int(size[0]) && as_int(c.shape(0)[0]))
    c.bad(kShapeMismatch, "`AffineGrid` has {} maps for a batch of {}", str(c.shape(0)[0]),
          str(size[0]));
  const Value grid =
      c.op("image.affine_grid", {c.value(0), c.shape_value(Dims(size.begin() + 2, size.end()))},
           {{"align_corners", c.flag_attr("align_corners")}});
  const auto ndim = static_cast<int64_t>(size.size());
  return {c.transpose(grid, moved_axis(ndim, 1, ndim - 1))};
}

Results convert_deform_conv(Context& c) {
  const int64_t rank = c.ndim(0) - 2;
  if (rank < 1 || c.ndim(1) != c.ndim(0))
    c.bad(kRankMismatch,
          "operands X and W of `DeformConv` have ranks {} and {}; expected 3 or "
          "more, the same",
          c.ndim(0), c.ndim(1));
  if (rank > 3) unsupported("{} spatial axes", rank);
  const auto count = static_cast<size_t>(rank);
  Value weight = c.value(1);
  if (c.has_attr("kernel_shape")) {
    const Ints stated = c.ints_attr("kernel_shape");
    const Dims held = *shaped(weight)->shape;
    if (const auto known = as_ints(Dims(held.begin() + 2, held.end())); known && stated != *known)
      c.bad(kShapeMismatch, "kernel_shape of `DeformConv` is {}; the weight has {}", str(stated),
            str(*known));
    Dims dims(2);
    for (const int64_t extent : stated) dims.push_back(int64(extent));
    weight = c.fitted(weight, dims, "the weight");
  }
  const Dims w = *shaped(weight)->shape;
  const auto kernel = as_ints(Dims(w.begin() + 2, w.end()));
  if (!kernel) unsupported("a weight of symbolic extents without a kernel_shape");
  const int64_t groups = c.int_attr("group", 1);
  const auto outputs = as_int(w[0]), inputs = as_int(c.shape(0)[1]), each = as_int(w[1]);
  if (groups < 1 || (outputs && *outputs % groups != 0) ||
      (inputs && each && *inputs != *each * groups))
    c.bad(kShapeMismatch, "`DeformConv` of {} channels has weights of shape {} in {} groups",
          str(c.shape(0)[1]), str(w), groups);
  std::vector<Value> args = {c.value(0), c.value(2)};
  if (c.has(4)) args.push_back(c.value(4));
  const Value columns = c.op("nn.deformable_columns", args,
                             {{"kernel_size", *kernel},
                              {"strides", sized(c, "strides", count, 1)},
                              {"padding", sized(c, "pads", 2 * count, 0)},
                              {"dilation", sized(c, "dilations", count, 1)},
                              {"groups", c.int_attr("offset_group", 1)}});
  // A product for each group of channels.
  const auto type = shaped(columns);
  const Expr batch = type->dim(0), windows = type->dim(3), g = int64(groups);
  const Expr rows = arith::simplify(w[1] * type->dim(2));
  const Expr of_group = arith::simplify(floordiv(w[0], groups));
  const Value y = c.op("matmul", {c.reshape(weight, {g, of_group, rows}),
                                  c.reshape(columns, {batch, g, rows, windows})});
  const Dims offset = c.shape(2);
  Dims shape = {batch, w[0]};
  shape.insert(shape.end(), offset.begin() + 2, offset.end());
  const Value result = c.reshape(y, shape);
  if (!c.has(3)) return {result};
  Dims channels(shape.size(), int64(1));
  channels[1] = w[0];
  return {c.op("add", {result, c.reshape(c.value(3), channels)})};
}

Results convert_col2im(Context& c) {
  const Dims block = c.dims(2, "block_shape"), image = c.dims(1, "image_shape");
  const auto strides = sized(c, "strides", block.size(), 1),
             pads = sized(c, "pads", 2 * block.size(), 0),
             dilations = sized(c, "dilations", block.size(), 1);
  Attrs attrs{{"strides", strides}, {"padding", pads}, {"dilation", dilations}};
  std::vector<Value> args = {c.value(0), c.shape_value(image)};
  if (const auto known = as_ints(block)) {
    attrs.set("block_size", *known);
    return {c.op("nn.col2im", args, attrs)};
  }
  // Blocks that only the run knows have to be those that the columns are of.
  if (image.size() != block.size() || c.ndim(0) != 3)
    c.bad(kShapeMismatch, "`Col2Im` of a tensor of rank {} has {} axes and blocks of {}", c.ndim(0),
          image.size(), block.size());
  Expr count = int64(1), rows = int64(1), fits = boolean(true);
  for (size_t d = 0; d < block.size(); ++d) {
    if (strides[d] < 1) c.bad(kBadAttribute, "`Col2Im` has a stride of {}", strides[d]);
    const Expr span = (block[d] - 1) * dilations[d] + 1;
    const Expr room = image[d] + pads[d] + pads[d + block.size()] - span;
    fits = logical_and(fits, logical_and(block[d] >= int64(1), room >= int64(0)));
    fits = logical_and(fits, block[d] < int64(int64_t{1} << 31));
    count = count * (floordiv(room, strides[d]) + 1);
    rows = rows * max(block[d], int64(1));
  }
  const Dims columns = c.shape(0);
  c.require(fits, kBadArgument, "a block of `Col2Im` has no elements, or is larger than the image");
  c.require(logical_and(eq(floormod(columns[1], rows), int64(0)), eq(columns[2], count)),
            kShapeMismatch, "`Col2Im` has other blocks than its columns are of");
  args.push_back(c.shape_value(block));
  return {c.op("nn.col2im", args, attrs)};
}

Results convert_center_crop_pad(Context& c) {
  std::vector<int64_t> axes;
  for (int64_t d = 0; d < c.ndim(0); ++d) axes.push_back(d);
  if (c.has_attr("axes")) axes = c.axes(c.ints_attr("axes"), c.ndim(0));
  const Dims shape = c.dims(1, "shape");
  for (const Expr& dim : shape)
    if (as_int(dim).value_or(0) < 0)
      c.bad(kBadArgument, "`CenterCropPad` to the shape {}; expected no negative number",
            str(shape));
  for (const Expr& dim : shape)
    c.require(dim >= int64(0), kBadArgument, "a size of `CenterCropPad` is negative");
  return {c.op("center_crop_pad", {c.value(0), c.shape_value(shape)}, {{"axes", axes}})};
}

Results convert_roi_align(Context& c) {
  const std::string shift = c.string_attr("coordinate_transformation_mode",
                                          c.opset() < 16 ? "output_half_pixel" : "half_pixel");
  if (shift != "half_pixel" && shift != "output_half_pixel")
    c.bad(
        kBadAttribute,
        "attribute `coordinate_transformation_mode` of `RoiAlign` is `{}`; expected half_pixel or "
        "output_half_pixel",
        shift);
  // The index of a region's image stands before its corners.
  const Dims count = {c.shape(2)[0], int64(1)};
  const Value images = c.cast(c.reshape(c.value(2), count), kFloat32);
  const Value rois =
      c.op("concat", {make<graph::Tuple>(std::vector<Value>{images, c.cast(c.value(1), kFloat32)})},
           {{"axis", 1}});
  const std::vector<int64_t> size = {c.int_attr("output_height", 1), c.int_attr("output_width", 1)};
  return {c.op("vision.roi_align", {c.value(0), rois},
               {{"pooled_size", size},
                {"spatial_scale", c.float_attr("spatial_scale", 1.0)},
                {"sample_ratio", c.int_attr("sampling_ratio", 0)},
                {"aligned", shift == "half_pixel"},
                {"mode", c.string_attr("mode", "avg")}})};
}

Results convert_max_roi_pool(Context& c) {
  return {c.op("vision.roi_pool", {c.value(0), c.value(1)},
               {{"pooled_size", c.ints_attr("pooled_shape")},
                {"spatial_scale", c.float_attr("spatial_scale", 1.0)}})};
}

}  // namespace

std::vector<OperatorRow> sampling_rows() {
  return {
      {"GridSample", 16, 2, 2, convert_grid_sample, "floats (nearest: all)", "1 to 3 spatial axes"},
      {"AffineGrid", 20, 2, 2, convert_affine_grid, "floats"},
      {"DeformConv", 19, 3, 5, convert_deform_conv, "floats", "1 to 3 spatial axes"},
      {"RoiAlign", 10, 3, 3, convert_roi_align, "floats"},
      {"MaxRoiPool", 1, 2, 2, convert_max_roi_pool, "floats"},
      {"Col2Im", 18, 3, 3, convert_col2im, "numbers"},
      {"CenterCropPad", 18, 2, 2, convert_center_crop_pad, "numbers"},
  };
}

}  // namespace tenon::onnx
