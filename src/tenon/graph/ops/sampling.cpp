// SPDX-License-Identifier: Apache-2.0
// Elements between the elements of an image, at places that are data: grids, regions, deformed
// windows. Places far outside are held near the image, so that every index is an integer.
#include <algorithm>

#include "tenon/graph/ops/window.h"

namespace tenon::graph {

namespace {

using Shape = std::vector<Expr>;

Expr number(DType dtype, double value) { return imm(dtype, value); }
Expr floor_of(const Expr& x) { return float_call(IntrinsicId::kFloor, {x}); }
Expr integer(const Expr& x) { return tenon::cast(kInt64, x); }

// `x` clamped to just outside of [0, extent); NaN becomes a place outside.
Expr held_near(const Expr& x, const Expr& extent) {
  const Expr least = number(x->dtype, -8), most = tenon::cast(x->dtype, extent + 8);
  return select(x > least, select(x < most, x, most), least);
}

Expr inside(const Expr& index, const Expr& extent) {
  return logical_and(index >= int64(0), index < extent);
}

// The taps of linear interpolation at `x`: the index of the first and the weight of the second.
struct Between {
  Expr first, share;
  explicit Between(const Expr& x) : first(integer(floor_of(x))), share(x - floor_of(x)) {}
  Expr index(int64_t tap) const { return first + tap; }
  Expr weight(int64_t tap) const { return tap == 0 ? number(share->dtype, 1) - share : share; }
};

void check_elements(KernelOf& kernel, const Expr& extent) {
  if (as_int(extent).value_or(0) > 0) return;
  kernel.append(make<tir::Assert>(
      extent > int64(0),
      fmt::format("{}: an axis without elements", name_for_messages(kernel.call()))));
}

// ---- image.grid_sample --------------------------------------------------------------------------

struct GridSampleAttrs {
  std::string method = "bilinear", layout, padding_mode = "zeros";
  bool align_corners = true;
  static auto table() {
    return std::tuple{
        attr<&GridSampleAttrs::method>("method",
                                       "\"nearest\", \"bilinear\" or \"bicubic\", along "
                                       "each axis"),
        attr<&GridSampleAttrs::layout>("layout", "of data: N, C and the spatial axes; \"\": that"),
        attr<&GridSampleAttrs::padding_mode>(
            "padding_mode", "what is outside: \"zeros\", \"border\" or \"reflection\""),
        attr<&GridSampleAttrs::align_corners>("align_corners",
                                              "-1 and 1 are centres of the outer elements, not "
                                              "their edges")};
  }
};

Type infer_grid_sample(const Call& call) {
  const auto attrs = attrs_as<GridSampleAttrs>(call);
  check_choice(call, "method", attrs.method, {"nearest", "bilinear", "bicubic"});
  check_choice(call, "padding_mode", attrs.padding_mode, {"zeros", "border", "reflection"});
  const Ref<TensorType> x = tensor_arg(call, 0), grid = tensor_arg(call, 1);
  check_float(call, 1);
  if (attrs.method != "nearest") check_float(call, 0);
  if (x->ndim < 0) return make<TensorType>(x->dtype, -1);
  const int64_t rank = x->ndim - 2;
  if (rank < 1 || rank > 3)
    throw CompileError(kRankMismatch, call.origin,
                       "argument `data` of `{}` is {}; expected 1 to 3 "
                       "spatial axes",
                       call.op->name, str(x));
  const std::string layout = "NC" + spatial_letters(static_cast<size_t>(rank));
  if (!attrs.layout.empty()) check_choice(call, "layout", attrs.layout, {layout});
  check_rank(call, 1, x->ndim);
  if (!x->shape || !grid->shape) return make<TensorType>(x->dtype, x->ndim);
  check_dim(call, 1, grid->dim(0), x->dim(0), "dimension 0");
  check_dim(call, 1, grid->dim(1), int64(rank), "dimension 1");
  Shape shape = *grid->shape;
  shape[0] = x->dim(0);
  shape[1] = x->dim(1);
  return tensor_of(shape, x->dtype, 0);
}

class GridSample {
 public:
  GridSample(KernelOf& kernel, const Call& call)
      : kernel_(kernel),
        attrs_(attrs_as<GridSampleAttrs>(call)),
        x_(attrs_.method == "nearest" ? kernel.arg(0) : kernel.wide_arg(0)),
        rank_(x_.ndim() - 2) {
    const Operand grid = kernel.wide_arg(1);
    if (attrs_.padding_mode != "zeros")
      for (size_t d = 0; d < rank_; ++d) check_elements(kernel, extent(d));
    // Places in elements, of the last axis first as in the grid.
    places_ = kernel.compute("places", grid.shape, [&](const Indices& i) {
      Expr place;
      for (size_t d = 0; d < rank_; ++d) {
        const Expr at = this->place(grid(i), extent(d));
        place = place ? select(eq(i[1], int64(component(d))), at, place) : at;
      }
      return place;
    });
  }

  Value emit() {
    return kernel_.emit_compute([&](const Indices& i) {
      Indices at(i.begin(), i.begin() + 2);
      return along(i, at, 0);
    });
  }

 private:
  const Expr& extent(size_t d) const { return x_.shape[2 + d]; }
  int64_t component(size_t d) const { return static_cast<int64_t>(rank_ - 1 - d); }

  // The place that grid value `g` names, brought back by border or reflection.
  Expr place(const Expr& g, const Expr& extent) const {
    const DType dtype = g->dtype;
    const Expr one = number(dtype, 1), half = number(dtype, 0.5);
    const Expr size = tenon::cast(dtype, extent);
    Expr x =
        attrs_.align_corners ? (g + one) * half * (size - one) : ((g + one) * size - one) * half;
    if (attrs_.method == "nearest") x = float_call(IntrinsicId::kRound, {x});
    const Expr least = attrs_.align_corners ? number(dtype, 0) : number(dtype, -0.5);
    const Expr most = size - (attrs_.align_corners ? one : half);
    const Expr outside = logical_or(x<least, x> most);
    // The taps of cubic interpolation are held inside one by one.
    if (attrs_.padding_mode == "border" && attrs_.method != "bicubic")
      x = select(outside, max(number(dtype, 0), min(x, size - one)), x);
    if (attrs_.padding_mode == "reflection") {
      const Expr period = (most - least) * number(dtype, 2);
      const Expr way = float_call(IntrinsicId::kFabs, {x - least});
      const Expr rest = way - period * floor_of(way / period);
      const Expr back = least + min(rest, period - rest);
      x = select(outside, select(period > number(dtype, 0), back, least), x);
    }
    return held_near(x, extent);
  }

  // The element at `at` and, along axes d and further, at the places of result element `i`.
  Expr along(const Indices& i, Indices& at, size_t d) const {
    if (d == rank_) return x_(at);
    Indices from = i;
    from[1] = int64(component(d));
    const Expr x = places_(from);
    if (attrs_.method == "nearest") return tap(i, at, d, integer(x));
    const Expr floor = floor_of(x), first = integer(floor);
    const Expr t = tenon::cast(x_.dtype, x - floor);
    Expr sum;
    const std::vector<Expr> weights = weights_of(t);
    const int64_t before = attrs_.method == "bicubic" ? 1 : 0;
    for (size_t k = 0; k < weights.size(); ++k) {
      const Expr term = tap(i, at, d, first + (static_cast<int64_t>(k) - before)) * weights[k];
      sum = sum ? sum + term : term;
    }
    return sum;
  }

  std::vector<Expr> weights_of(const Expr& t) const {
    const DType dtype = t->dtype;
    const Expr one = number(dtype, 1);
    if (attrs_.method == "bilinear") return {one - t, t};
    constexpr double kA = -0.75;
    const auto near = [&](const Expr& d) {
      return (number(dtype, kA + 2) * d - number(dtype, kA + 3)) * d * d + one;
    };
    const auto far = [&](const Expr& d) {
      return ((number(dtype, kA) * d - number(dtype, 5 * kA)) * d + number(dtype, 8 * kA)) * d -
             number(dtype, 4 * kA);
    };
    return {far(t + one), near(t), near(one - t), far(number(dtype, 2) - t)};
  }

  Expr tap(const Indices& i, Indices& at, size_t d, const Expr& index) const {
    const Expr& size = extent(d);
    const auto element = [&](const Expr& where) {
      at.push_back(where);
      const Expr value = along(i, at, d + 1);
      at.pop_back();
      return value;
    };
    if (attrs_.padding_mode == "zeros")
      return if_then_else(inside(index, size), element(index), imm(x_.dtype, int64_t{0}));
    if (attrs_.padding_mode == "border") return element(max(int64(0), min(index, size - 1)));
    // Reflected at the outer edges or centres, with a period of twice the way between them.
    const Expr turn = attrs_.align_corners ? (size - 1) * 2 : size * 2;
    const Expr m = floormod(index, max(turn, int64(1)));
    return element(select(m < size, m, turn - m - (attrs_.align_corners ? 0 : 1)));
  }

  KernelOf& kernel_;
  GridSampleAttrs attrs_;
  Operand x_, places_;
  size_t rank_;
};

OpDef grid_sample() {
  OpDef op;
  op.name = "image.grid_sample";
  op.summary = "The data at the places of a grid, from -1 to 1 along each axis.";
  op.inputs = {{"data", "(n, c, spatial axes)"},
               {"grid",
                "(n, spatial rank, spatial axes of the result), the last axis's place "
                "first"}};
  op.attrs = attrs_of<GridSampleAttrs>();
  op.infer_type = infer_grid_sample;
  op.lower = [](BlockBuilder& builder, const Call& call) {
    KernelOf kernel(builder, call);
    return GridSample(kernel, call).emit();
  };
  op.source = "ONNX GridSample-22";
  return op;
}

// ---- image.affine_grid --------------------------------------------------------------------------

struct AffineGridAttrs {
  bool align_corners = true;
  static auto table() {
    return std::tuple{attr<&AffineGridAttrs::align_corners>(
        "align_corners", "-1 and 1 are centres of the outer elements, not their edges")};
  }
};

OpDef affine_grid() {
  OpDef op;
  op.name = "image.affine_grid";
  op.summary = "The grid of places that an affine map gives for images of a size.";
  op.inputs = {{"data", "(n, 2, 3) or (n, 3, 4): the maps"},
               {"size", "a shape: the spatial axes, (h, w) or (d, h, w)"}};
  op.attrs = attrs_of<AffineGridAttrs>();
  op.infer_type = [](const Call& call) -> Type {
    check_rank(call, 0, 3);
    check_float(call, 0);
    const Ref<TensorType> theta = tensor_arg(call, 0);
    const auto size = dims_arg(call, 1);
    if (!size || !theta->shape)
      return make<TensorType>(theta->dtype, size ? static_cast<int64_t>(size->size()) + 2 : -1);
    const auto rank = static_cast<int64_t>(size->size());
    if (rank < 2 || rank > 3)
      throw CompileError(kBadArgument, call.origin,
                         "argument `size` of `{}` has {} numbers; expected 2 or 3", call.op->name,
                         rank);
    check_dim(call, 0, theta->dim(1), int64(rank), "dimension 1");
    check_dim(call, 0, theta->dim(2), int64(rank + 1), "dimension 2");
    Shape shape = {theta->dim(0), int64(rank)};
    shape.insert(shape.end(), size->begin(), size->end());
    return tensor_of(shape, theta->dtype, 0);
  };
  op.lower = [](BlockBuilder& builder, const Call& call) {
    KernelOf kernel(builder, call);
    const Operand theta = kernel.wide_arg(0);
    const bool aligned = attrs_as<AffineGridAttrs>(call).align_corners;
    const auto rank = static_cast<int64_t>(kernel.shape().size()) - 2;
    const DType dtype = theta.dtype;
    const auto coordinate = [&](const Indices& i, int64_t component) {
      const auto axis = static_cast<size_t>(2 + rank - 1 - component);
      const Expr size = kernel.shape()[axis];
      const Expr twice = tenon::cast(dtype, i[axis] * 2);
      const Expr one = number(dtype, 1);
      if (!aligned) return (twice + one) / tenon::cast(dtype, size) - one;
      // The only element of an axis is in the middle.
      return select(size > int64(1), twice / tenon::cast(dtype, max(size - 1, int64(1))) - one,
                    number(dtype, 0));
    };
    return kernel.emit_compute([&](const Indices& i) {
      Expr sum = theta({i[0], i[1], int64(rank)});
      for (int64_t c = rank - 1; c >= 0; --c)
        sum = theta({i[0], i[1], int64(c)}) * coordinate(i, c) + sum;
      return sum;
    });
  };
  op.fusion = FusionKind::kInjective;
  op.source = "ONNX AffineGrid-20";
  return op;
}

// ---- nn.deformable_columns ----------------------------------------------------------------------

struct DeformableAttrs {
  std::vector<int64_t> kernel_size, strides = {1}, padding = {0}, dilation = {1};
  int64_t groups = 1;
  static auto table() {
    return std::tuple{
        required<&DeformableAttrs::kernel_size>("kernel_size", "of each spatial axis"),
        attr<&DeformableAttrs::strides>("strides", "between windows"),
        attr<&DeformableAttrs::padding>(
            "padding", "before each axis, then after each; or one number for both ends"),
        attr<&DeformableAttrs::dilation>("dilation", "between the taps of a window"),
        attr<&DeformableAttrs::groups>("groups", "of channels with offsets of their own")};
  }
};

struct Deformable {
  size_t rank;
  std::vector<int64_t> kernel, strides, dilation;
  Padding padding;
  int64_t groups, taps = 1;

  explicit Deformable(const Call& call) {
    const auto attrs = attrs_as<DeformableAttrs>(call);
    rank = attrs.kernel_size.size();
    if (rank < 1 || rank > 3 || attrs.groups < 1)
      throw CompileError(kBadAttribute, call.origin,
                         "`{}` has {} spatial axes and {} groups; expected 1 to 3, and 1 or more",
                         call.op->name, rank, attrs.groups);
    kernel = along_axes(call, "kernel_size", attrs.kernel_size, rank, 1);
    strides = along_axes(call, "strides", attrs.strides, rank, 1);
    dilation = along_axes(call, "dilation", attrs.dilation, rank, 1);
    padding = padding_of(call, attrs.padding, rank);
    groups = attrs.groups;
    for (const int64_t k : kernel) taps *= k;
  }
};

Type infer_deformable(const Call& call) {
  const Deformable d(call);
  const auto ndim = static_cast<int64_t>(d.rank) + 2;
  check_rank(call, 0, ndim);
  check_float(call, 0);
  const Ref<TensorType> x = tensor_arg(call, 0);
  if (!x->shape) return make<TensorType>(x->dtype, 4);
  const auto channels = as_int(x->dim(1));
  if (channels && *channels % d.groups != 0)
    throw CompileError(kShapeMismatch, call.origin, "`{}` has {} channels in {} groups of offsets",
                       call.op->name, *channels, d.groups);
  Shape windows;
  for (size_t a = 0; a < d.rank; ++a)
    windows.push_back(window_count(call, (*x->shape)[2 + a], d.padding.before[a],
                                   d.padding.after[a], int64(d.kernel[a]), d.strides[a],
                                   d.dilation[a], false));
  for (size_t i = 1; i < 3; ++i) {
    if (!present(call, i)) continue;
    check_rank(call, i, ndim);
    check_dtype(call, i, x->dtype);
    const Ref<TensorType> type = tensor_arg(call, i);
    if (!type->shape) continue;
    check_dim(call, i, type->dim(0), x->dim(0), "dimension 0");
    const int64_t each = i == 1 ? static_cast<int64_t>(d.rank) : 1;
    check_dim(call, i, type->dim(1), int64(d.groups * d.taps * each), "dimension 1");
    for (size_t a = 0; a < d.rank; ++a)
      check_dim(call, i, (*type->shape)[2 + a], windows[a], fmt::format("dimension {}", 2 + a));
  }
  return tensor_of(Shape{x->dim(0), x->dim(1), int64(d.taps), product(windows)}, x->dtype, 0);
}

Value lower_deformable(BlockBuilder& builder, const Call& call) {
  const Deformable d(call);
  KernelOf kernel(builder, call);
  const Operand x = kernel.wide_arg(0), offset = kernel.wide_arg(1);
  const Operand mask = present(call, 2) ? kernel.wide_arg(2) : Operand();
  Shape windows;
  for (size_t a = 0; a < d.rank; ++a)
    windows.push_back(window_count(call, x.shape[2 + a], d.padding.before[a], d.padding.after[a],
                                   int64(d.kernel[a]), d.strides[a], d.dilation[a], false));
  const auto rank = static_cast<int64_t>(d.rank);
  const Shape kernel_shape = to_exprs(d.kernel);
  return kernel.emit_compute([&](const Indices& i) {
    const Indices window = apart(i[3], windows), tap = apart(i[2], kernel_shape);
    const Expr group = floordiv(i[1] * d.groups, x.shape[1]);
    const Expr slot = group * d.taps + i[2];
    std::vector<Between> between;
    for (size_t a = 0; a < d.rank; ++a) {
      Indices at = {i[0], slot * rank + static_cast<int64_t>(a)};
      at.insert(at.end(), window.begin(), window.end());
      const Expr start = window[a] * d.strides[a] + tap[a] * d.dilation[a] - d.padding.before[a];
      between.emplace_back(held_near(tenon::cast(x.dtype, start) + offset(at), x.shape[2 + a]));
    }
    Expr sum;
    for (int64_t corner = 0; corner < int64_t{1} << d.rank; ++corner) {
      Indices at = {i[0], i[1]};
      Expr in = boolean(true), weight;
      for (size_t a = 0; a < d.rank; ++a) {
        const int64_t side = corner >> (d.rank - 1 - a) & 1;
        at.push_back(between[a].index(side));
        in = logical_and(in, inside(at.back(), x.shape[2 + a]));
        const Expr w = between[a].weight(side);
        weight = weight ? weight * w : w;
      }
      const Expr term = if_then_else(in, x(at), number(x.dtype, 0)) * weight;
      sum = sum ? sum + term : term;
    }
    if (!mask) return sum;
    Indices at = {i[0], slot};
    at.insert(at.end(), window.begin(), window.end());
    return sum * mask(at);
  });
}

OpDef deformable_columns() {
  OpDef op;
  op.name = "nn.deformable_columns";
  op.summary =
      "The elements under the taps of windows that are moved by offsets, each tap by itself: what "
      "a deformable convolution multiplies with its weights.";
  op.inputs = {
      {"data", "(n, c, spatial axes)"},
      {"offset", "(n, groups * taps * spatial rank, windows along each axis), in elements"},
      {"mask", "(n, groups * taps, windows along each axis): factors", true}};
  op.attrs = attrs_of<DeformableAttrs>();
  op.infer_type = infer_deformable;
  op.lower = lower_deformable;
  op.source = "ONNX DeformConv-22";
  return op;
}

}  // namespace

std::vector<OpDef> sampling_ops() { return {grid_sample(), affine_grid(), deformable_columns()}; }

}  // namespace tenon::graph
