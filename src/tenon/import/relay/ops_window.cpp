// SPDX-License-Identifier: Apache-2.0
// Convolutions, pools and resizing.
#include <algorithm>
#include <cmath>

#include "tenon/graph/layout.h"
#include "tenon/import/relay/operators.h"

namespace tenon::relay {

namespace {

using graph::Layout;

std::string spatial(size_t rank) { return std::string("DHW").substr(3 - rank); }

// Padding before each axis, then after each, from 1, rank or 2 * rank numbers.
Ints padding(OpCall& c, size_t rank) {
  const Ints given = c.list("padding", Ints{0});
  Ints out(2 * rank);
  if (given.size() == 1) {
    std::fill(out.begin(), out.end(), given[0]);
  } else if (given.size() == rank) {
    for (size_t d = 0; d < rank; ++d) out[d] = out[d + rank] = given[d];
  } else if (given.size() == 2 * rank) {
    out = given;
  } else {
    c.bad(kBadAttribute, "attribute `padding` of `{}` has {} numbers; expected 1, {} or {}",
          c.name(), given.size(), rank, 2 * rank);
  }
  return out;
}

// A layout whose axes are these, in any order, perhaps with blocks.
Layout layout_of(OpCall& c, const std::string& text, const std::string& letters) {
  const auto layout = Layout::parse(text);
  const bool fits =
      layout && layout->primal().size() == letters.size() &&
      std::all_of(letters.begin(), letters.end(), [&](char letter) { return layout->has(letter); });
  if (!fits)
    c.bad(kBadAttribute, "layout \"{}\" in a call of `{}`; expected one of the axes {}", text,
          c.name(), letters);
  return *layout;
}

// What attributes state a second time must agree with the weight.
void check_stated(OpCall& c, const Layout& kernel, const std::string& letters, bool transposed) {
  const Dims shape = c.shape(1);
  if (shape.size() != kernel.ndim())
    c.bad(kRankMismatch, "`{}` has a weight of rank {}; layout {} has {}", c.name(), shape.size(),
          kernel.text(), kernel.ndim());
  if (c.has("kernel_size")) {
    const Ints size = c.list("kernel_size");
    for (size_t d = 0; d < letters.size() && size.size() == letters.size(); ++d) {
      const auto extent = as_int(kernel.extent(shape, letters[d]));
      if (extent && *extent != size[d])
        c.bad(kShapeMismatch,
              "attribute `kernel_size` of `{}` is {}; the weight of layout {} has "
              "shape {}",
              c.name(), AttrValue(size).str(), kernel.text(), str(shape));
    }
  }
  if (c.has("channels")) {
    const int64_t groups = c.integer("groups", 1), channels = c.integer("channels");
    const auto filters = as_int(kernel.extent(shape, 'O'));
    if (filters && *filters * (transposed ? groups : 1) != channels)
      c.bad(kShapeMismatch,
            "attribute `channels` of `{}` is {}; the weight of layout {} has shape {}", c.name(),
            channels, kernel.text(), str(shape));
  }
}

Value convert_conv(OpCall& c, size_t rank, bool transposed) {
  const std::string letters = spatial(rank);
  const std::string data = c.text("data_layout", "NC" + letters);
  const std::string kernel = c.text("kernel_layout", (transposed ? "IO" : "OI") + letters);
  const std::string out = c.text("out_layout", "");
  check_stated(c, layout_of(c, kernel, "OI" + letters), letters, transposed);
  const DType dtype = c.dtype(0), asked = c.dtype_attr("out_dtype", dtype);
  // Narrow floats are summed in float32.
  const bool narrow = dtype.is_float() && dtype.bits < 32;
  const DType sums = narrow ? kFloat32 : asked;
  Attrs attrs{{"strides", c.list("strides", Ints(rank, 1))},
              {"padding", padding(c, rank)},
              {"dilation", c.list("dilation", Ints(rank, 1))},
              {"groups", c.integer("groups", 1)},
              {"data_layout", data},
              {"kernel_layout", kernel},
              {"out_layout", out == data ? "" : out},
              {"out_dtype", sums == dtype ? kVoid : sums}};
  if (transposed) attrs.set("output_padding", c.list("output_padding", Ints(rank, 0)));
  const std::string name = fmt::format("nn.conv{}d{}", rank, transposed ? "_transpose" : "");
  return c.cast(c.op(name, {c.arg(0), c.arg(1)}, attrs), asked);
}

OperatorRow conv(const char* name, size_t rank, bool transposed) {
  return {name, 2, 2, [rank, transposed](OpCall& c) { return convert_conv(c, rank, transposed); },
          fmt::format("nn.conv{}d{}", rank, transposed ? "_transpose" : "")};
}

Value convert_pool(OpCall& c, const char* kind, size_t rank) {
  const std::string letters = spatial(rank);
  const std::string layout = c.text("layout", "NC" + letters), out = c.text("out_layout", "");
  Attrs attrs{{"pool_size", c.list("pool_size")},
              {"strides", c.list("strides", Ints(rank, 1))},
              {"padding", padding(c, rank)},
              {"dilation", c.list("dilation", Ints(rank, 1))},
              {"ceil_mode", c.flag("ceil_mode", false)},
              {"layout", layout},
              {"out_layout", out == layout ? "" : out}};
  if (std::string_view(kind) == "avg")
    attrs.set("count_include_pad", c.flag("count_include_pad", false));
  return c.op(fmt::format("nn.{}_pool{}d", kind, rank), {c.arg(0)}, attrs);
}

OperatorRow pool(const char* name, const char* kind, size_t rank) {
  return {name, 1, 1, [kind, rank](OpCall& c) { return convert_pool(c, kind, rank); },
          fmt::format("nn.{}_pool{}d", kind, rank)};
}

// The places of the spatial axes in the layout.
Ints spatial_axes(OpCall& c, const std::string& text, size_t rank) {
  const Layout layout = layout_of(c, text, "NC" + spatial(rank));
  if (static_cast<int64_t>(layout.ndim()) != c.ndim(0))
    c.bad(kRankMismatch, "`{}` of a tensor of rank {}; layout {} has {}", c.name(), c.ndim(0), text,
          layout.ndim());
  Ints axes;
  for (const char letter : spatial(rank)) {
    if (!layout.has(letter) || layout.block(letter) != 1)
      c.bad(kBadAttribute, "layout \"{}\" of `{}` has no whole axis {}", text, c.name(), letter);
    axes.push_back(layout.position(letter));
  }
  return axes;
}

OperatorRow global_pool(const char* name, const char* op, size_t rank) {
  const auto convert = [op, rank](OpCall& c) {
    const std::string layout = c.text("layout", "NC" + spatial(rank));
    c.ignore({"out_layout"});
    return c.op(op, {c.arg(0)}, {{"axis", spatial_axes(c, layout, rank)}, {"keepdims", true}});
  };
  return {name, 1, 1, convert, op};
}

Value convert_adaptive(OpCall& c, bool average, size_t rank) {
  const std::string layout = c.text("layout", "NC" + spatial(rank));
  c.ignore({"out_layout"});
  const Ints axes = spatial_axes(c, layout, rank);
  Ints size = c.list("output_size", Ints{});
  if (size.size() == 1) size.assign(rank, size[0]);
  if (!size.empty() && size.size() != rank)
    c.bad(kBadAttribute, "attribute `output_size` of `{}` is {}; expected {} numbers", c.name(),
          AttrValue(size).str(), rank);
  if (size == Ints(rank, 1))
    return c.op(average ? "mean" : "max", {c.arg(0)}, {{"axis", axes}, {"keepdims", true}});
  if (average) {
    const AttrValue wanted = size.empty() ? AttrValue() : AttrValue(size);
    return c.op(fmt::format("nn.adaptive_avg_pool{}d", rank), {c.arg(0)},
                {{"output_size", wanted}, {"layout", layout}});
  }
  if (size.empty()) return c.arg(0);
  // Windows of one size where they divide the axis.
  Ints window;
  for (size_t d = 0; d < rank; ++d) {
    const auto extent = as_int(c.shape(0)[static_cast<size_t>(axes[d])]);
    if (!extent || size[d] < 1 || *extent % size[d] != 0)
      unsupported("windows of unequal sizes: {} of an axis of {}", size[d],
                  str(c.shape(0)[static_cast<size_t>(axes[d])]));
    window.push_back(*extent / size[d]);
  }
  return c.op(fmt::format("nn.max_pool{}d", rank), {c.arg(0)},
              {{"pool_size", window}, {"strides", window}, {"layout", layout}});
}

OperatorRow adaptive(const char* name, bool average, size_t rank) {
  return {name,
          1,
          1,
          [average, rank](OpCall& c) { return convert_adaptive(c, average, rank); },
          average ? fmt::format("nn.adaptive_avg_pool{}d, mean", rank)
                  : fmt::format("nn.max_pool{}d, max", rank),
          average ? "" : "windows of one size only"};
}

Value resized(OpCall& c, const Dims& size, const std::string& layout, const std::string& method,
              const std::string& mode, std::string rounding, double alpha, int64_t exclude) {
  if (mode != "half_pixel" && mode != "asymmetric" && mode != "align_corners" &&
      mode != "pytorch_half_pixel")
    unsupported("coordinate_transformation_mode \"{}\"", mode);
  if (rounding.empty()) rounding = mode == "align_corners" ? "round" : "floor";
  if (rounding == "round") rounding = "round_prefer_ceil";  // of what is never negative
  return c.op("image.resize2d", {c.arg(0), OpCall::shape_value(size)},
              {{"layout", layout},
               {"method", method},
               {"coordinate_transformation_mode", mode},
               {"rounding_method", rounding},
               {"cubic_alpha", alpha},
               {"cubic_exclude", exclude}});
}

Value convert_resize(OpCall& c) {
  c.ignore({"roi", "extrapolation_value"});
  const DType dtype = c.dtype(0);
  const Value y =
      resized(c, to_exprs(c.list("size")), c.text("layout", "NCHW"), c.text("method", "linear"),
              c.text("coordinate_transformation_mode", "half_pixel"), c.text("rounding_method", ""),
              c.real("cubic_alpha", -0.5), c.integer("cubic_exclude", 0));
  return c.cast(y, c.dtype_attr("out_dtype", dtype));
}

Value convert_upsampling(OpCall& c) {
  const std::string text = c.text("layout", "NCHW"), method = c.text("method", "nearest_neighbor");
  const bool corners = c.flag("align_corners", false);
  const Ints axes = spatial_axes(c, text, 2);
  const double scales[] = {c.real("scale_h", 1), c.real("scale_w", 1)};
  Dims size;
  for (size_t d = 0; d < 2; ++d) {
    const auto extent = as_int(c.shape(0)[static_cast<size_t>(axes[d])]);
    if (!extent) unsupported("a symbolic dimension");
    const double wide = std::round(static_cast<double>(*extent) * scales[d]);
    if (!(wide >= 0 && wide < 1e9))
      c.bad(kBadAttribute, "`{}` of an axis of {} by {}", c.name(), *extent, scales[d]);
    size.push_back(int64(static_cast<int64_t>(wide)));
  }
  const std::string kind = method == "bilinear" ? "linear" : method == "bicubic" ? "cubic" : method;
  return resized(c, size, text, kind, corners ? "align_corners" : "asymmetric", "", -0.5, 0);
}

}  // namespace

std::vector<OperatorRow> window_rows() {
  return {
      conv("nn.conv1d", 1, false),
      conv("nn.conv2d", 2, false),
      conv("nn.conv3d", 3, false),
      conv("nn.contrib_conv2d_NCHWc", 2, false),
      conv("nn.contrib_depthwise_conv2d_NCHWc", 2, false),
      conv("nn.conv1d_transpose", 1, true),
      conv("nn.conv2d_transpose", 2, true),
      conv("nn.conv3d_transpose", 3, true),
      pool("nn.max_pool1d", "max", 1),
      pool("nn.max_pool2d", "max", 2),
      pool("nn.max_pool3d", "max", 3),
      pool("nn.avg_pool1d", "avg", 1),
      pool("nn.avg_pool2d", "avg", 2),
      pool("nn.avg_pool3d", "avg", 3),
      global_pool("nn.global_avg_pool1d", "mean", 1),
      global_pool("nn.global_avg_pool2d", "mean", 2),
      global_pool("nn.global_avg_pool3d", "mean", 3),
      global_pool("nn.global_max_pool1d", "max", 1),
      global_pool("nn.global_max_pool2d", "max", 2),
      global_pool("nn.global_max_pool3d", "max", 3),
      adaptive("nn.adaptive_avg_pool1d", true, 1),
      adaptive("nn.adaptive_avg_pool2d", true, 2),
      adaptive("nn.adaptive_avg_pool3d", true, 3),
      adaptive("nn.adaptive_max_pool1d", false, 1),
      adaptive("nn.adaptive_max_pool2d", false, 2),
      adaptive("nn.adaptive_max_pool3d", false, 3),
      {"image.resize2d", 1, 1, convert_resize, "image.resize2d",
       "not tf_crop_and_resize, tf_half_pixel_for_nn"},
      {"nn.upsampling", 1, 1, convert_upsampling, "image.resize2d", "static extents"},
  };
}

}  // namespace tenon::relay
