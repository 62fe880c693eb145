// SPDX-License-Identifier: Apache-2.0
// Pooling of regions of images whose bounds are data, and positions of maxima.
#include <algorithm>

#include "tenon/graph/ops/non_max_suppression.h"
#include "tenon/graph/ops/window.h"

namespace tenon::graph {

namespace {

using Shape = std::vector<Expr>;

constexpr int64_t kMostSamples = 1 << 15;  // along an axis of a bin: more is an error of the run

Expr f32(double value) { return imm(kFloat32, value); }
Expr f32(const Expr& e) { return tenon::cast(kFloat32, e); }
Expr floor_of(const Expr& x) { return float_call(IntrinsicId::kFloor, {x}); }
Expr ceil_of(const Expr& x) { return float_call(IntrinsicId::kCeil, {x}); }

struct RegionAttrs {
  std::vector<int64_t> pooled_size;
  double spatial_scale = 1;
  static auto table() {
    return std::tuple{
        required<&RegionAttrs::pooled_size>("pooled_size", "height and width of a result"),
        attr<&RegionAttrs::spatial_scale>("spatial_scale", "of the data's axes to the regions'")};
  }
};
struct RoiAlignAttrs : RegionAttrs {
  int64_t sample_ratio = -1;
  bool aligned = false;
  std::string layout = "NCHW", mode = "avg";
  static auto table() {
    return std::tuple_cat(
        RegionAttrs::table(),
        std::tuple{
            attr<&RoiAlignAttrs::sample_ratio>(
                "sample_ratio", "samples along each axis of a bin; below 1: one for each element"),
            attr<&RoiAlignAttrs::aligned>("aligned", "elements are centred at whole numbers + 1/2"),
            attr<&RoiAlignAttrs::layout>("layout", "must be NCHW"),
            attr<&RoiAlignAttrs::mode>("mode", "\"avg\", or \"max\" of the weighted elements")});
  }
};

Type infer_regions(const Call& call) {
  const auto size = attrs_as<RegionAttrs>(call).pooled_size;
  if (size.size() != 2 || size[0] < 1 || size[1] < 1)
    throw_bad_kind(call, "pooled_size", *call.attrs.find("pooled_size"));
  check_rank(call, 0, 4);
  check_rank(call, 1, 2);
  check_float(call, 0);
  check_float(call, 1);
  const Ref<TensorType> x = tensor_arg(call, 0), rois = tensor_arg(call, 1);
  if (!x->shape || !rois->shape) return make<TensorType>(x->dtype, 4);
  check_dim(call, 1, rois->dim(1), int64(5), "dimension 1");
  return tensor_of(Shape{rois->dim(0), x->dim(1), int64(size[0]), int64(size[1])}, x->dtype, 0);
}

// The data and regions of a call, whose image indices are checked before anything is read.
struct Regions {
  Operand x, rois;
  Expr height, width;

  Regions(KernelOf& kernel, const Call& call)
      : x(kernel.wide_arg(0)), rois(kernel.arg(1)), height(x.shape[2]), width(x.shape[3]) {
    rois.dtype = kFloat32;
    const auto axes = tir::KernelBuilder::axes({rois.shape[0]});
    const Expr image = rois({axes[0].var, int64(0)});
    const Expr valid = logical_and(image >= f32(0), image < f32(x.shape[0]));
    kernel.append(tir::define(
        "check_regions", axes, {},
        make<tir::Assert>(valid, fmt::format("{}: a region of an image that is not in the batch",
                                             name_for_messages(call)))));
  }
  Expr image(const Expr& roi) const {
    const Expr index = tenon::cast(kInt64, rois({roi, int64(0)}));
    return max(int64(0), min(index, x.shape[0] - 1));
  }
};

// `out[i...]` is `first`, then for each step of the loops over `extents` what `next` makes of it.
// The extents may be data.
void accumulate(KernelOf& kernel, const Operand& out, const Expr& first,
                const std::function<Shape(const Indices&)>& extents,
                const std::function<Expr(const Indices&, const Indices&, const Expr&)>& next) {
  const auto axes = tir::KernelBuilder::axes(out.shape);
  const Indices at = tir::KernelBuilder::indices(axes);
  std::vector<Ref<tenon::Var>> loops;
  Indices over;
  const Shape bounds = extents(at);
  for (size_t d = 0; d < bounds.size(); ++d) {
    loops.push_back(make<tenon::Var>(fmt::format("k{}", d), kInt64));
    over.emplace_back(loops.back());
  }
  const tir::Stmt step = make<tir::BufferStore>(out.buffer, next(at, over, out(at)), at);
  const tir::Stmt body =
      tir::seq({make<tir::BufferStore>(out.buffer, first, at), tir::nest(loops, bounds, step)});
  kernel.append(tir::define(out.buffer->name, axes, {}, body));
}

// ---- vision.roi_align ---------------------------------------------------------------------------

class RoiAlign {
 public:
  RoiAlign(KernelOf& kernel, const Call& call)
      : kernel_(kernel), attrs_(attrs_as<RoiAlignAttrs>(call)), regions_(kernel, call) {
    const Expr count = regions_.rois.shape[0];
    // Of each region: the start, the extent of a bin, and its samples, along y, then x.
    start_ = kernel.compute("start", {count, int64(2)}, [&](const Indices& i) {
      return scaled(i, select(eq(i[1], int64(0)), int64(2), int64(1)));
    });
    bin_ = kernel.compute("bin", {count, int64(2)}, [&](const Indices& i) {
      const Expr end = scaled(i, select(eq(i[1], int64(0)), int64(4), int64(3)));
      const Expr extent = end - start_(i);
      const Expr pooled =
          select(eq(i[1], int64(0)), f32(static_cast<double>(attrs_.pooled_size[0])),
                 f32(static_cast<double>(attrs_.pooled_size[1])));
      return (attrs_.aligned ? extent : max(extent, f32(1))) / pooled;
    });
    if (attrs_.sample_ratio > 0) return;
    samples_ = kernel.compute("samples", {count, int64(2)}, [&](const Indices& i) {
      const Expr samples = ceil_of(bin_(i));
      const Expr most = f32(static_cast<double>(kMostSamples + 1));
      return tenon::cast(kInt64, select(samples > f32(0), min(samples, most), f32(0)));
    });
    const auto axes = tir::KernelBuilder::axes({count, int64(2)});
    kernel.append(tir::define(
        "check_samples", axes, {},
        make<tir::Assert>(samples_(tir::KernelBuilder::indices(axes)) <= int64(kMostSamples),
                          fmt::format("{}: a region of more than {} samples for a bin",
                                      name_for_messages(call), kMostSamples))));
  }

  Value emit() { return attrs_.sample_ratio > 0 ? emit_even() : emit_adaptive(); }

 private:
  // As many samples in each bin: places and shares of all are computed once, and the elements of a
  // place lie next to each other.
  Value emit_even() {
    const Shape& shape = kernel_.shape();
    const DType dtype = regions_.x.dtype;
    const int64_t samples = attrs_.sample_ratio;
    const Expr height = regions_.height, width = regions_.width;
    // A row and a column of zeros follow, for samples outside.
    const Operand data = kernel_.compute(
        "channels_last", {regions_.x.shape[0], height + 1, width + 1, shape[1]},
        [&](const Indices& i) {
          return if_then_else(logical_and(i[1] < height, i[2] < width),
                              regions_.x({i[0], i[3], i[1], i[2]}), imm(dtype, int64_t{0}));
        });
    const Places y = places(0), x = places(1);
    const auto element = [&](const Indices& i, const Indices& k) {
      const Indices row{i[0], i[1], k[0]}, column{i[0], i[2], k[1]};
      const auto at = [&](const Operand& rows, const Operand& columns, const Expr& wy,
                          const Expr& wx) {
        return data({regions_.image(i[0]), max(int64(0), min(rows(row), height)),
                     max(int64(0), min(columns(column), width)), i[3]}) *
               tenon::cast(dtype, wy * wx);
      };
      const Expr one = f32(1), down = y.share(row), right = x.share(column);
      const Expr upper =
          joined(at(y.low, x.low, one - down, one - right), at(y.low, x.high, one - down, right));
      const Expr lower =
          joined(at(y.high, x.low, down, one - right), at(y.high, x.high, down, right));
      return joined(upper, lower);
    };
    const bool averages = attrs_.mode == "avg";
    const tir::Reducer most{[](DType type) { return tir::least_value(type); },
                            [](const Expr& a, const Expr& b) { return max(a, b); }};
    const Operand pooled = kernel_.reduce("pooled", {shape[0], shape[2], shape[3], shape[1]},
                                          {int64(samples), int64(samples)},
                                          averages ? tir::sum_reducer() : most, element);
    return kernel_.emit_compute([&](const Indices& i) {
      const Expr value = pooled({i[0], i[2], i[3], i[1]});
      return averages ? value / imm(dtype, samples * samples) : value;
    });
  }

  Value emit_adaptive() {
    const bool averages = attrs_.mode == "avg";
    const DType dtype = regions_.x.dtype;
    const Operand total = kernel_.allocate("pooled", kernel_.shape(), dtype);
    const auto extents = [&](const Indices& i) { return Shape{samples(i, 0), samples(i, 1)}; };
    if (averages) {
      accumulate(kernel_, total, imm(dtype, int64_t{0}), extents,
                 [&](const Indices& i, const Indices& k, const Expr& before) {
                   return before + sample(i, k);
                 });
      return kernel_.emit_compute([&](const Indices& i) {
        const Expr count = max(samples(i, 0) * samples(i, 1), int64(1));
        return total(i) / tenon::cast(dtype, count);
      });
    }
    accumulate(kernel_, total, tir::least_value(dtype), extents,
               [&](const Indices& i, const Indices& k, const Expr& before) {
                 return max(before, sample(i, k));
               });
    // A bin without samples has nothing.
    return kernel_.emit_compute([&](const Indices& i) {
      return select(samples(i, 0) * samples(i, 1) > int64(0), total(i), imm(dtype, int64_t{0}));
    });
  }

  // One axis of a sample: two elements with their weights, none where it lies outside.
  struct Tap {
    Expr low, high, share, in;
  };

  // Of each region, bin along an axis and sample: two positions, and the share of the second one.
  struct Places {
    Operand low, high, share;
  };
  Places places(int64_t axis) {
    const Shape shape{regions_.rois.shape[0], kernel_.shape()[static_cast<size_t>(2 + axis)],
                      int64(attrs_.sample_ratio)};
    const Expr outside = axis == 0 ? regions_.height : regions_.width;
    const std::string name = axis == 0 ? "row" : "column";
    const auto of = [&](const char* what, const std::function<Expr(const Tap&)>& part) {
      return kernel_.compute(name + what, shape,
                             [&](const Indices& i) { return part(tap(i[0], i[1], i[2], axis)); });
    };
    return {of("_low", [&](const Tap& tap) { return select(tap.in, tap.low, outside); }),
            of("_high", [&](const Tap& tap) { return select(tap.in, tap.high, outside); }),
            of("_share", [&](const Tap& tap) { return tap.share; })};
  }

  Expr joined(const Expr& a, const Expr& b) const {
    return attrs_.mode == "avg" ? a + b : max(a, b);
  }

  Expr scaled(const Indices& i, const Expr& column) const {
    const Expr value = regions_.rois({i[0], column}) * f32(attrs_.spatial_scale);
    return attrs_.aligned ? value - f32(0.5) : value;
  }
  Expr samples(const Indices& i, int64_t axis) const {
    return samples_ ? samples_({i[0], int64(axis)}) : int64(attrs_.sample_ratio);
  }

  Tap tap(const Expr& region, const Expr& at, const Expr& step, int64_t axis) const {
    const Expr extent = axis == 0 ? regions_.height : regions_.width;
    const Expr bin = bin_({region, int64(axis)}), size = f32(extent);
    const Expr place = start_({region, int64(axis)}) + f32(at) * bin +
                       (f32(step) + f32(0.5)) * bin / f32(samples({region}, axis));
    const Expr in = logical_and(place >= f32(-1), place <= size);
    const Expr held = select(in, min(max(place, f32(0)), size - f32(1)), f32(0));
    const Expr floor = floor_of(held);
    const Expr low = tenon::cast(kInt64, floor);
    return {low, min(low + 1, extent - 1), held - floor, in};
  }
  Expr sample(const Indices& i, const Indices& k) const {
    const DType dtype = regions_.x.dtype;
    const Tap y = tap(i[0], i[2], k[0], 0), x = tap(i[0], i[3], k[1], 1);
    const auto element = [&](const Expr& row, const Expr& column, const Expr& wy, const Expr& wx) {
      return regions_.x({regions_.image(i[0]), i[1], row, column}) * tenon::cast(dtype, wy * wx);
    };
    const Expr one = f32(1);
    const Expr upper = joined(element(y.low, x.low, one - y.share, one - x.share),
                              element(y.low, x.high, one - y.share, x.share));
    const Expr lower = joined(element(y.high, x.low, y.share, one - x.share),
                              element(y.high, x.high, y.share, x.share));
    return if_then_else(logical_and(y.in, x.in), joined(upper, lower), imm(dtype, int64_t{0}));
  }

  KernelOf& kernel_;
  RoiAlignAttrs attrs_;
  Regions regions_;
  Operand start_, bin_, samples_;
};

OpDef roi_align() {
  OpDef op;
  op.name = "vision.roi_align";
  op.summary = "Bins of regions, each pooled over samples between the elements.";
  op.inputs = {{"data", "(n, c, h, w)"},
               {"rois", "(regions, 5): the image's index, then x and y of the start and the end"}};
  op.attrs = attrs_of<RoiAlignAttrs>();
  op.infer_type = [](const Call& call) -> Type {
    const auto attrs = attrs_as<RoiAlignAttrs>(call);
    check_choice(call, "layout", attrs.layout, {"NCHW"});
    check_choice(call, "mode", attrs.mode, {"avg", "max"});
    if (attrs.sample_ratio > kMostSamples)
      throw_bad_kind(call, "sample_ratio", *call.attrs.find("sample_ratio"));
    return infer_regions(call);
  };
  op.lower = [](BlockBuilder& builder, const Call& call) {
    KernelOf kernel(builder, call);
    return RoiAlign(kernel, call).emit();
  };
  op.source = "ONNX RoiAlign-22";
  return op;
}

// ---- vision.roi_pool ----------------------------------------------------------------------------

// Nearest whole number, halves away from 0.
Expr nearest(const Expr& x) {
  return select(x < f32(0), ceil_of(x - f32(0.5)), floor_of(x + f32(0.5)));
}

Value lower_roi_pool(BlockBuilder& builder, const Call& call) {
  KernelOf kernel(builder, call);
  const auto attrs = attrs_as<RegionAttrs>(call);
  const Regions regions(kernel, call);
  const DType dtype = regions.x.dtype;
  // Of each bin: where it starts and ends in the image, along y and along x.
  const auto bounds = [&](int64_t axis, bool end) {
    const Expr extent = axis == 0 ? regions.height : regions.width;
    const int64_t pooled = attrs.pooled_size[static_cast<size_t>(axis)];
    const char* name = axis == 0 ? (end ? "bottom" : "top") : (end ? "right" : "left");
    return kernel.compute(name, {regions.rois.shape[0], int64(pooled)}, [&](const Indices& i) {
      const auto corner = [&](int64_t column) {
        return nearest(regions.rois({i[0], int64(column)}) * f32(attrs.spatial_scale));
      };
      const Expr start = corner(axis == 0 ? 2 : 1), stop = corner(axis == 0 ? 4 : 3);
      const Expr bin = max(stop - start + f32(1), f32(1)) / f32(static_cast<double>(pooled));
      const Expr edge = end ? ceil_of((f32(i[1]) + f32(1)) * bin) : floor_of(f32(i[1]) * bin);
      const Expr place = start + edge, size = f32(extent);
      return tenon::cast(kInt64, select(place > f32(0), min(place, size), f32(0)));
    });
  };
  const Operand top = bounds(0, false), bottom = bounds(0, true), left = bounds(1, false),
                right = bounds(1, true);
  const auto row = [](const Operand& bound, const Indices& i) { return bound({i[0], i[2]}); };
  const auto column = [](const Operand& bound, const Indices& i) { return bound({i[0], i[3]}); };
  const Operand most = kernel.allocate("most", kernel.shape(), dtype);
  accumulate(
      kernel, most, tir::least_value(dtype),
      [&](const Indices& i) {
        return Shape{max(row(bottom, i) - row(top, i), int64(0)),
                     max(column(right, i) - column(left, i), int64(0))};
      },
      [&](const Indices& i, const Indices& k, const Expr& before) {
        return max(before, regions.x({regions.image(i[0]), i[1], row(top, i) + k[0],
                                      column(left, i) + k[1]}));
      });
  return kernel.emit_compute([&](const Indices& i) {
    const Expr empty =
        logical_or(row(bottom, i) <= row(top, i), column(right, i) <= column(left, i));
    return select(empty, imm(dtype, int64_t{0}), most(i));
  });
}

OpDef roi_pool() {
  OpDef op;
  op.name = "vision.roi_pool";
  op.summary = "The greatest element of each bin of regions, whose bounds are whole elements.";
  op.inputs = {{"data", "(n, c, h, w)"},
               {"rois",
                "(regions, 5): the image's index, then x and y of the first and the last "
                "element"}};
  op.attrs = attrs_of<RegionAttrs>();
  op.infer_type = infer_regions;
  op.lower = lower_roi_pool;
  op.source = "ONNX MaxRoiPool-1";
  return op;
}

// ---- nn.max_pool_positions ----------------------------------------------------------------------

struct PositionsAttrs {
  std::vector<int64_t> pool_size, strides = {1}, padding = {0}, dilation = {1};
  bool column_major = false;
  static auto table() {
    return std::tuple{
        required<&PositionsAttrs::pool_size>("pool_size", "of a window"),
        attr<&PositionsAttrs::strides>("strides", "between windows"),
        attr<&PositionsAttrs::padding>("padding", "before each axis, then after each"),
        attr<&PositionsAttrs::dilation>("dilation", "between the taps of a window"),
        attr<&PositionsAttrs::column_major>("column_major",
                                            "spatial axes are counted from the first on")};
  }
};

Type infer_positions(const Call& call) {
  const auto attrs = attrs_as<PositionsAttrs>(call);
  const size_t rank = attrs.pool_size.size();
  check_rank(call, 0, static_cast<int64_t>(rank) + 2);
  check_rank(call, 1, static_cast<int64_t>(rank) + 2);
  for (const auto& [name, values] :
       {std::pair{"strides", &attrs.strides}, std::pair{"dilation", &attrs.dilation},
        std::pair{"pool_size", &attrs.pool_size}})
    (void)along_axes(call, name, *values, rank, 1);
  (void)padding_of(call, attrs.padding, rank);
  check_dtype(call, 1, tensor_arg(call, 0)->dtype);
  return same_shape(call, 1, kInt64);
}

Value lower_positions(BlockBuilder& builder, const Call& call) {
  const auto attrs = attrs_as<PositionsAttrs>(call);
  const size_t rank = attrs.pool_size.size();
  const auto strides = along_axes(call, "strides", attrs.strides, rank, 1);
  const auto dilation = along_axes(call, "dilation", attrs.dilation, rank, 1);
  const Padding padding = padding_of(call, attrs.padding, rank);
  KernelOf kernel(builder, call);
  const Operand x = kernel.arg(0), most = kernel.arg(1);
  // The first element, in row-major order, that the greatest one is equal to.
  const Operand first = kernel.reduce(
      attrs.column_major ? "first" : kernel.out_name(), kernel.shape(), to_exprs(attrs.pool_size),
      tir::min_reducer(), [&](const Indices& i, const Indices& k) {
        Indices at = {i[0], i[1]};
        Expr in = boolean(true), flat = i[0] * x.shape[1] + i[1];
        for (size_t d = 0; d < rank; ++d) {
          const Expr place = i[2 + d] * strides[d] + k[d] * dilation[d] - padding.before[d];
          in = logical_and(in, logical_and(place >= int64(0), place < x.shape[2 + d]));
          flat = flat * x.shape[2 + d] + place;
          at.push_back(max(int64(0), min(place, x.shape[2 + d] - 1)));
        }
        const Expr value = x(at);
        Expr hit = eq(value, most(i));
        if (x.dtype.is_float()) hit = logical_or(hit, ne(value, value));
        return select(logical_and(in, hit), flat, tir::greatest_value(kInt64));
      });
  if (!attrs.column_major) return kernel.emit({first});
  return kernel.emit_compute([&](const Indices& i) {
    const Indices at = apart(first(i), x.shape);
    Expr flat = at[0] * x.shape[1] + at[1];
    for (size_t d = rank; d-- > 0;) flat = flat * x.shape[2 + d] + at[2 + d];
    return flat;
  });
}

OpDef max_pool_positions() {
  OpDef op;
  op.name = "nn.max_pool_positions";
  op.summary = "Where in the whole tensor the greatest elements of a max pool stand.";
  op.inputs = {{"data", "(n, c, spatial axes)"}, {"pooled", "the result of the pool"}};
  op.attrs = attrs_of<PositionsAttrs>();
  op.infer_type = infer_positions;
  op.lower = lower_positions;
  op.source = "ONNX MaxPool-12";
  return op;
}

}  // namespace

std::vector<OpDef> region_ops() {
  return {roi_align(), roi_pool(), max_pool_positions(), all_class_non_max_suppression()};
}

}  // namespace tenon::graph
