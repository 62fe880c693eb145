// SPDX-License-Identifier: Apache-2.0
// Resizing along any axes, in every mode of ONNX: one axis after the other, each by positions and
// weights that are computed once for the axis.
#include <algorithm>
#include <cmath>

#include "tenon/graph/ops/define.h"

namespace tenon::graph {

namespace {

using Shape = std::vector<Expr>;
using Floats = std::vector<double>;

Expr f64(double value) { return imm(kFloat64, value); }
Expr f64(const Expr& e) { return tenon::cast(kFloat64, e); }

struct ResizeAttrs {
  std::vector<int64_t> axes;
  std::optional<Floats> scales, roi;
  std::string method = "linear", coordinate_transformation_mode = "half_pixel",
              rounding_method = "round_prefer_floor";
  double cubic_alpha = -0.75, extrapolation_value = 0;
  bool exclude_outside = false, antialias = false;
  static auto table() {
    return std::tuple{
        required<&ResizeAttrs::axes>("axes", "resized"),
        attr<&ResizeAttrs::scales>("scales", "of each axis; None: the quotients of the sizes"),
        attr<&ResizeAttrs::roi>("roi", "of tf_crop_and_resize: starts, then ends"),
        attr<&ResizeAttrs::method>("method", "\"nearest_neighbor\", \"linear\" or \"cubic\""),
        attr<&ResizeAttrs::coordinate_transformation_mode>("coordinate_transformation_mode",
                                                           "as ONNX"),
        attr<&ResizeAttrs::rounding_method>("rounding_method", "of nearest_neighbor, as ONNX"),
        attr<&ResizeAttrs::cubic_alpha>("cubic_alpha", "ONNX's cubic_coeff_a"),
        attr<&ResizeAttrs::extrapolation_value>("extrapolation_value",
                                                "of tf_crop_and_resize: outside of the data"),
        attr<&ResizeAttrs::exclude_outside>("exclude_outside", "only elements inside have weight"),
        attr<&ResizeAttrs::antialias>("antialias", "the filter is widened where sizes shrink")};
  }
};

// Arguments: the scales and the region, where only the run knows them.
enum Input : size_t { kData, kSize, kScales, kRoi };

Type infer(const Call& call) {
  const auto attrs = attrs_as<ResizeAttrs>(call);
  check_choice(call, "method", attrs.method, {"nearest_neighbor", "linear", "cubic"});
  check_choice(call, "coordinate_transformation_mode", attrs.coordinate_transformation_mode,
               {"half_pixel", "asymmetric", "pytorch_half_pixel", "align_corners",
                "half_pixel_symmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"});
  check_choice(call, "rounding_method", attrs.rounding_method,
               {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"});
  const Ref<TensorType> x = tensor_arg(call, kData);
  if (!x->dtype.is_void() && !x->dtype.is_float() && !x->dtype.is_integer() &&
      attrs.method != "nearest_neighbor")
    throw CompileError(kDTypeMismatch, call.origin,
                       "argument `data` of `{}` has dtype {}; expected a number", call.op->name,
                       x->dtype.str());
  const size_t count = attrs.axes.size();
  for (const auto& [name, numbers, wanted] :
       {std::tuple{"scales", &attrs.scales, count}, std::tuple{"roi", &attrs.roi, 2 * count}})
    if (*numbers && (*numbers)->size() != wanted)
      throw_bad_kind(call, name, *call.attrs.find(name));
  for (const double scale : attrs.scales.value_or(Floats{}))
    if (!(scale > 0)) throw_bad_kind(call, "scales", *call.attrs.find("scales"));
  for (const auto& [i, wanted] : {std::pair{size_t{kScales}, count}, {size_t{kRoi}, 2 * count}}) {
    if (!present(call, i)) continue;
    check_rank(call, i, 1);
    check_float(call, i);
    if (const auto type = tensor_arg(call, i); type->shape)
      check_dim(call, i, type->dim(0), int64(static_cast<int64_t>(wanted)), "dimension 0");
  }
  if (attrs.coordinate_transformation_mode == "tf_crop_and_resize" && !attrs.roi &&
      !present(call, kRoi))
    throw CompileError(kBadArgument, call.origin,
                       "`{}` by \"tf_crop_and_resize\" has no roi; expected attribute "
                       "`roi` or argument `roi_tensor`",
                       call.op->name);
  const auto size = dims_arg(call, kSize);
  if (size && size->size() != count)
    throw CompileError(kBadArgument, call.origin,
                       "argument `size` of `{}` has {} numbers; expected {}", call.op->name,
                       size->size(), count);
  if (x->ndim < 0) return make<TensorType>(x->dtype, -1);
  const std::vector<size_t> places = axes_of(call, attrs.axes, x->ndim);
  if (!x->shape || !size) return make<TensorType>(x->dtype, x->ndim);
  Shape shape = *x->shape;
  for (size_t d = 0; d < count; ++d) {
    if (is_int(shape[places[d]], 0) && as_int((*size)[d]).value_or(0) > 0)
      throw CompileError(kShapeMismatch, call.origin,
                         "`{}` of an axis without elements to {}; expected at least one",
                         call.op->name, tenon::str((*size)[d]));
    shape[places[d]] = (*size)[d];
  }
  return tensor_of(shape, x->dtype, 0);
}

// One axis of a resize.
struct Axis {
  size_t place;
  Expr in, out;
  Expr scale, start, end;  // float64; start and end of the region
  std::optional<double> known_scale;
};

// Where in the input the element at `i` of the output lies.
Expr coordinate(const ResizeAttrs& attrs, const Axis& axis, const Expr& i) {
  const std::string& mode = attrs.coordinate_transformation_mode;
  const Expr x = f64(i), in = f64(axis.in), last = in - f64(1), half = f64(0.5);
  const Expr half_pixel = (x + half) / axis.scale - half;
  // The output's extent before it is rounded to a whole number.
  const Expr width = in * axis.scale;
  const Expr is_one = eq(width, f64(1));
  const Expr steps = select(is_one, f64(1), width - f64(1));
  if (mode == "asymmetric") return x / axis.scale;
  if (mode == "tf_half_pixel_for_nn") return (x + half) / axis.scale;
  if (mode == "pytorch_half_pixel") return select(axis.out > int64(1), half_pixel, f64(0));
  if (mode == "align_corners") return select(is_one, f64(0), x * last / steps);
  if (mode == "tf_crop_and_resize") {
    const Expr extent = (axis.end - axis.start) * last;
    return axis.start * last + select(is_one, extent * half, x * extent / steps);
  }
  if (mode == "half_pixel") return half_pixel;
  // half_pixel_symmetric: the output's true width, in steps of the input, is centred.
  return in * half * (f64(1) - f64(axis.out) / width) + half_pixel;
}

// The kernel function at distance `t`.
Expr weight(const ResizeAttrs& attrs, const Expr& t) {
  const Expr d = float_call(IntrinsicId::kFabs, {t});
  if (attrs.method == "linear") return max(f64(1) - d, f64(0));
  const double a = attrs.cubic_alpha;
  const Expr near = (f64(a + 2) * d - f64(a + 3)) * d * d + f64(1);
  const Expr far = ((f64(a) * d - f64(5 * a)) * d + f64(8 * a)) * d - f64(4 * a);
  return select(d <= f64(1), near, select(d < f64(2), far, f64(0)));
}

class Resize {
 public:
  Resize(KernelOf& kernel, const Call& call)
      : kernel_(kernel),
        attrs_(attrs_as<ResizeAttrs>(call)),
        x_(kernel.arg(kData)),
        nearest_(attrs_.method == "nearest_neighbor") {
    if (present(call, kScales)) scales_ = kernel.arg(kScales);
    if (present(call, kRoi)) roi_ = kernel.arg(kRoi);
    const std::vector<size_t> places = axes_of(call, attrs_.axes, static_cast<int64_t>(x_.ndim()));
    for (size_t d = 0; d < places.size(); ++d) add_axis(call, d, places[d]);
  }

  Value emit() {
    const bool crops = attrs_.coordinate_transformation_mode == "tf_crop_and_resize";
    // Wide enough for sums, of integers too, which are rounded afterwards.
    const DType sums = nearest_ ? x_.dtype : x_.dtype.is_float() ? wide_dtype(x_.dtype) : kFloat64;
    Operand data = x_;
    data.dtype = sums;
    std::vector<Operand> inside;
    for (const Axis& axis : axes_) {
      const std::string number = std::to_string(axis.place);
      const Operand place = kernel_.compute("place_" + number, {axis.out}, [&](const Indices& i) {
        const Expr x = coordinate(attrs_, axis, i[0]);
        // Clamped to just outside of the data, so that it converts to an integer; NaN becomes a place outside.
        const Expr least = f64(-8), most = f64(axis.in) + f64(8);
        return select(x > least, select(x < most, x, most), least);
      });
      if (crops) inside.push_back(place);
      data = nearest_ ? pick(data, axis, place, number) : blend(data, axis, place, number, sums);
    }
    return kernel_.emit_compute([&](const Indices& i) {
      Expr value = rounded(data(i));
      for (size_t d = 0; d < inside.size(); ++d) {
        const Axis& axis = axes_[d];
        const Expr x = inside[d]({i[axis.place]});
        value = select(logical_and(x >= f64(0), x <= f64(axis.in) - f64(1)), value,
                       imm(value->dtype, attrs_.extrapolation_value));
      }
      return value;
    });
  }

 private:
  void add_axis(const Call& call, size_t d, size_t place) {
    Axis axis{place, x_.shape[place], kernel_.shape()[place], {}, f64(0), f64(1), {}};
    const auto in = as_int(axis.in), out = as_int(axis.out);
    const auto entry = [](size_t i) { return Indices{int64(static_cast<int64_t>(i))}; };
    if (attrs_.scales) {
      axis.known_scale = (*attrs_.scales)[d];
    } else if (!present(call, kScales) && in && out && *in > 0) {
      axis.known_scale = static_cast<double>(*out) / static_cast<double>(*in);
    }
    axis.scale = axis.known_scale         ? f64(*axis.known_scale)
                 : present(call, kScales) ? f64(scales_(entry(d)))
                                          : f64(axis.out) / f64(axis.in);
    const size_t count = attrs_.axes.size();
    if (attrs_.roi) {
      axis.start = f64((*attrs_.roi)[d]);
      axis.end = f64((*attrs_.roi)[count + d]);
    } else if (roi_) {
      axis.start = f64(roi_(entry(d)));
      axis.end = f64(roi_(entry(count + d)));
    }
    if (!in)
      kernel_.append(
          make<tir::Assert>(logical_or(axis.in > int64(0), eq(axis.out, int64(0))),
                            fmt::format("{}: an axis without elements", name_for_messages(call))));
    axes_.push_back(axis);
  }

  Operand pick(const Operand& data, const Axis& axis, const Operand& place,
               const std::string& number) {
    const std::string& how = attrs_.rounding_method;
    const Operand from = kernel_.compute("from_" + number, {axis.out}, [&](const Indices& i) {
      const Expr x = place(i);
      const Expr rounded =
          how == "round_prefer_floor" ? float_call(IntrinsicId::kCeil, {x - f64(0.5)})
          : how == "round_prefer_ceil"
              ? float_call(IntrinsicId::kFloor, {x + f64(0.5)})
              : float_call(how == "floor" ? IntrinsicId::kFloor : IntrinsicId::kCeil, {x});
      return held(tenon::cast(kInt64, rounded), axis);
    });
    Shape shape = data.shape;
    shape[axis.place] = axis.out;
    return kernel_.compute("picked_" + number, shape, [&](const Indices& i) {
      Indices at = i;
      at[axis.place] = from({i[axis.place]});
      return data(at);
    });
  }

  // Half of the taps: how far the filter reaches, in elements.
  Expr reach(const Axis& axis) const {
    const int64_t support = attrs_.method == "cubic" ? 2 : 1;
    if (!attrs_.antialias) return int64(support);
    if (axis.known_scale) {
      const double width = static_cast<double>(support) / std::min(*axis.known_scale, 1.0);
      return int64(static_cast<int64_t>(std::min(std::ceil(width), 1e9)));
    }
    // A size is rounded to a number of elements: it may be greater by half than in * scale.
    const Expr most = ceildiv(axis.in * (2 * support), max(axis.out * 2 - 1, int64(1)));
    return simplify_dim(max(most, int64(support)));
  }

  Operand blend(const Operand& data, const Axis& axis, const Operand& place,
                const std::string& number, DType sums) {
    const Expr half = reach(axis), taps = simplify_dim(half * 2);
    const Expr narrowed = attrs_.antialias ? min(axis.scale, f64(1)) : f64(1);
    const auto tap = [&](const Indices& i) {
      const Expr floor = float_call(IntrinsicId::kFloor, {place({i[0]})});
      return tenon::cast(kInt64, floor) - half + 1 + i[1];
    };
    Operand weights = kernel_.compute("weight_" + number, {axis.out, taps}, [&](const Indices& i) {
      const Expr at = tap(i), x = place({i[0]});
      Expr w = weight(attrs_, narrowed * (f64(at) - x));
      if (attrs_.method == "linear" && !attrs_.antialias) {
        const Expr share = x - float_call(IntrinsicId::kFloor, {x});
        w = select(eq(i[1], int64(0)), f64(1) - share, share);
      }
      if (!attrs_.exclude_outside) return w;
      return select(logical_and(at >= int64(0), at < axis.in), w, f64(0));
    });
    if (attrs_.antialias || attrs_.exclude_outside) {
      const Operand total =
          kernel_.reduce("total_" + number, {axis.out}, {taps}, tir::sum_reducer(),
                         [&](const Indices& i, const Indices& k) { return weights({i[0], k[0]}); });
      const Operand raw = weights;
      weights = kernel_.compute("share_" + number, {axis.out, taps}, [&](const Indices& i) {
        const Expr sum = total({i[0]});
        return raw(i) / select(eq(sum, f64(0)), f64(1), sum);
      });
    }
    weights.dtype = sums;
    const Operand from = kernel_.compute("from_" + number, {axis.out, taps},
                                         [&](const Indices& i) { return held(tap(i), axis); });
    Shape shape = data.shape;
    shape[axis.place] = axis.out;
    const auto term = [&](const Indices& i, const Expr& k) {
      Indices at = i;
      at[axis.place] = from({i[axis.place], k});
      return data(at) * weights({i[axis.place], k});
    };
    const auto count = as_int(taps);
    if (!count || *count > 16)
      return kernel_.reduce("blended_" + number, shape, {taps}, tir::sum_reducer(),
                            [&](const Indices& i, const Indices& k) { return term(i, k[0]); });
    return kernel_.compute("blended_" + number, shape, [&](const Indices& i) {
      Expr sum = term(i, int64(0));
      for (int64_t k = 1; k < *count; ++k) sum = sum + term(i, int64(k));
      return sum;
    });
  }

  static Expr held(const Expr& index, const Axis& axis) {
    return max(int64(0), min(index, axis.in - 1));
  }

  // To the result's dtype; integers to the nearest in their range.
  Expr rounded(const Expr& value) const {
    if (nearest_ || x_.dtype.is_float()) return value;
    const Expr whole = float_call(IntrinsicId::kRound, {value});
    const Expr least = tenon::cast(value->dtype, tir::least_value(x_.dtype));
    const Expr most = tenon::cast(value->dtype, tir::greatest_value(x_.dtype));
    return select(whole >= most, tir::greatest_value(x_.dtype),
                  tenon::cast(x_.dtype, max(least, min(whole, most))));
  }

  KernelOf& kernel_;
  ResizeAttrs attrs_;
  Operand x_, scales_, roi_;
  bool nearest_;
  std::vector<Axis> axes_;
};

OpDef resize() {
  OpDef op;
  op.name = "image.resize";
  op.summary = "Tensors of other extents along some axes, in every mode of ONNX.";
  op.inputs = {{"data", "any shape"},
               {"size", "a shape: the extents of axes"},
               OpInput{"scales_tensor", "(axes,), where attribute scales is None", true}.used_as(
                   InputUse::kPositive),
               {"roi_tensor", "(2 * axes,), where attribute roi is None", true}};
  op.attrs = attrs_of<ResizeAttrs>();
  op.infer_type = infer;
  op.lower = [](BlockBuilder& builder, const Call& call) {
    KernelOf kernel(builder, call);
    return Resize(kernel, call).emit();
  };
  op.source = "ONNX Resize-19";
  return op;
}

}  // namespace

std::vector<OpDef> resize_ops() { return {resize()}; }

}  // namespace tenon::graph
