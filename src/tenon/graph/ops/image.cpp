// SPDX-License-Identifier: Apache-2.0
// Resizing of images.
#include <cmath>

#include "tenon/graph/ops/window.h"

namespace tenon::graph {

namespace {

using Shape = std::vector<Expr>;

Expr f32(double value) { return imm(kFloat32, value); }
Expr f32(const Expr& e) { return tenon::cast(kFloat32, e); }

struct ResizeAttrs {
  std::optional<std::vector<double>> scales;
  std::string layout = "NCHW", method = "linear", coordinate_transformation_mode = "half_pixel",
              rounding_method = "round";
  double cubic_alpha = -0.75;
  int64_t cubic_exclude = 0;
  static auto table() {
    return std::tuple{
        attr<&ResizeAttrs::scales>(
            "scales", "of height and width, where they are not the quotients of the sizes"),
        attr<&ResizeAttrs::layout>("layout", "of data"),
        attr<&ResizeAttrs::method>("method", "\"nearest_neighbor\", \"linear\" or \"cubic\""),
        attr<&ResizeAttrs::coordinate_transformation_mode>("coordinate_transformation_mode",
                                                           "as ONNX"),
        attr<&ResizeAttrs::rounding_method>("rounding_method",
                                            "of nearest_neighbor: to even, or as ONNX"),
        attr<&ResizeAttrs::cubic_alpha>("cubic_alpha", "ONNX's cubic_coeff_a"),
        attr<&ResizeAttrs::cubic_exclude>("cubic_exclude", "1: only elements inside have weight")};
  }
};

// One axis of a resize.
struct Axis {
  size_t place;
  Expr in, out;
  Expr scale;                     // out / in, or as given
  std::optional<int64_t> factor;  // where the scale is a whole number
};

Axis resize_axis(const ResizeAttrs& attrs, const Layout& layout, const Shape& from, const Shape& to,
                 size_t which) {
  Axis axis;
  axis.place = static_cast<size_t>(layout.position("HW"[which]));
  axis.in = from[axis.place];
  axis.out = to[axis.place];
  const auto in = as_int(axis.in), out = as_int(axis.out);
  if (attrs.scales && attrs.scales->size() == 2) {
    const double scale = (*attrs.scales)[which];
    axis.scale = f32(scale);
    if (scale >= 1 && scale < 65536 && scale == std::floor(scale))
      axis.factor = static_cast<int64_t>(scale);
  } else {
    axis.scale = in && out && *in > 0 ? f32(static_cast<double>(*out) / static_cast<double>(*in))
                                      : f32(axis.out) / f32(axis.in);
    if (in && out && *in > 0 && *out % *in == 0) axis.factor = *out / *in;
  }
  return axis;
}

// Where in the input the element at `i` of the output lies.
Expr coordinate(const ResizeAttrs& attrs, const Axis& axis, const Expr& i) {
  const std::string& mode = attrs.coordinate_transformation_mode;
  const Expr x = f32(i);
  const Expr half_pixel = (x + f32(0.5)) / axis.scale - f32(0.5);
  if (mode == "half_pixel") return half_pixel;
  if (mode == "asymmetric") return x / axis.scale;
  if (mode == "pytorch_half_pixel") return select(axis.out > int64(1), half_pixel, f32(0.0));
  if (mode == "align_corners")
    return select(axis.out > int64(1), x * (f32(axis.in - 1) / f32(max(axis.out - 1, int64(1)))),
                  f32(0.0));
  // half_pixel_symmetric: the output's true width, in steps of the input, is centred.
  const Expr adjustment = f32(axis.out) / (axis.scale * f32(axis.in));
  const Expr centre = f32(axis.in) / f32(2.0);
  return centre * (f32(1.0) - adjustment) + half_pixel;
}

Expr inside(const Expr& index, const Expr& extent) { return max(int64(0), min(index, extent - 1)); }

Expr nearest(const ResizeAttrs& attrs, const Axis& axis, const Expr& i) {
  const std::string& mode = attrs.coordinate_transformation_mode;
  const std::string& rounding = attrs.rounding_method;
  const bool exact = (mode == "asymmetric" && rounding == "floor") ||
                     (mode == "half_pixel" && rounding == "round_prefer_floor");
  if (axis.factor && exact) return inside(floordiv(i, *axis.factor), axis.in);
  const Expr x = coordinate(attrs, axis, i);
  const Expr rounded =
      rounding == "round_prefer_floor"  ? float_call(IntrinsicId::kCeil, {x - f32(0.5)})
      : rounding == "round_prefer_ceil" ? float_call(IntrinsicId::kFloor, {x + f32(0.5)})
                                        : float_call(rounding == "floor"  ? IntrinsicId::kFloor
                                                     : rounding == "ceil" ? IntrinsicId::kCeil
                                                                          : IntrinsicId::kRound,
                                                     {x});
  return inside(tenon::cast(kInt64, rounded), axis.in);
}

struct Tap {
  Expr index, weight;
};

std::vector<Tap> linear_taps(const ResizeAttrs& attrs, const Axis& axis, const Expr& i) {
  const Expr x = coordinate(attrs, axis, i);
  const Expr floor = float_call(IntrinsicId::kFloor, {x});
  const Expr first = tenon::cast(kInt64, floor);
  const Expr ratio = x - floor;
  return {{inside(first, axis.in), f32(1.0) - ratio}, {inside(first + 1, axis.in), ratio}};
}

std::vector<Tap> cubic_taps(const ResizeAttrs& attrs, const Axis& axis, const Expr& i) {
  const Expr x = coordinate(attrs, axis, i);
  const Expr floor = float_call(IntrinsicId::kFloor, {x});
  const Expr first = tenon::cast(kInt64, floor);
  const Expr t = x - floor;
  const double a = attrs.cubic_alpha;
  const auto near = [&](const Expr& d) {
    return ((f32(a + 2) * d - f32(a + 3)) * d) * d + f32(1.0);
  };
  const auto far = [&](const Expr& d) {
    return ((f32(a) * d - f32(5 * a)) * d + f32(8 * a)) * d - f32(4 * a);
  };
  std::vector<Tap> taps = {{first - 1, far(t + f32(1.0))},
                           {first, near(t)},
                           {first + 1, near(f32(1.0) - t)},
                           {first + 2, far(f32(2.0) - t)}};
  if (attrs.cubic_exclude != 0) {
    Expr total = f32(0.0);
    for (Tap& tap : taps) {
      const Expr valid = logical_and(tap.index >= int64(0), tap.index < axis.in);
      tap.weight = select(valid, tap.weight, f32(0.0));
      total = total + tap.weight;
    }
    for (Tap& tap : taps) tap.weight = tap.weight / total;
  }
  for (Tap& tap : taps) tap.index = inside(tap.index, axis.in);
  return taps;
}

Type infer_resize(const Call& call) {
  const auto attrs = attrs_as<ResizeAttrs>(call);
  const Layout layout = parse_layout(call, "layout", attrs.layout, "NCHW");
  check_rank(call, 0, static_cast<int64_t>(layout.ndim()));
  check_choice(call, "method", attrs.method, {"nearest_neighbor", "linear", "cubic"});
  check_choice(
      call, "coordinate_transformation_mode", attrs.coordinate_transformation_mode,
      {"half_pixel", "asymmetric", "pytorch_half_pixel", "align_corners", "half_pixel_symmetric"});
  check_choice(call, "rounding_method", attrs.rounding_method,
               {"round", "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"});
  if (attrs.method != "nearest_neighbor") check_float(call, 0);
  const Ref<TensorType> x = tensor_arg(call, 0);
  const auto size = dims_arg(call, 1);
  if (size && size->size() != 2)
    throw CompileError(kBadArgument, call.origin,
                       "argument `size` of `{}` has {} numbers; expected "
                       "2",
                       call.op->name, size->size());
  for (const double scale : attrs.scales.value_or(std::vector<double>{}))
    if (!(scale > 0)) throw_bad_kind(call, "scales", *call.attrs.find("scales"));
  if (!x->shape || !size) return make<TensorType>(x->dtype, x->ndim);
  Shape shape = *x->shape;
  for (size_t d = 0; d < 2; ++d) shape[static_cast<size_t>(layout.position("HW"[d]))] = (*size)[d];
  return tensor_of(shape, x->dtype, 0);
}

Value lower_resize(BlockBuilder& builder, const Call& call) {
  const auto attrs = attrs_as<ResizeAttrs>(call);
  const Layout layout = parse_layout(call, "layout", attrs.layout, "NCHW");
  KernelOf kernel(builder, call);
  const Operand x = kernel.arg(0);
  const Axis rows = resize_axis(attrs, layout, x.shape, kernel.shape(), 0);
  const Axis columns = resize_axis(attrs, layout, x.shape, kernel.shape(), 1);
  const std::string& method = attrs.method;
  const auto element = [&](const Indices& i, const Expr& row, const Expr& column) {
    Indices at = i;
    at[rows.place] = row;
    at[columns.place] = column;
    return x(at);
  };
  return kernel.emit_compute([&](const Indices& i) {
    const Expr& r = i[rows.place];
    const Expr& c = i[columns.place];
    if (method == "nearest_neighbor")
      return element(i, nearest(attrs, rows, r), nearest(attrs, columns, c));
    // An axis that stays as it is has one tap.
    const auto taps_of = [&](const Axis& axis, const Expr& index) -> std::vector<Tap> {
      if (axis.factor == 1 && dims_agree(axis.in, axis.out) == DimsAgree::kYes)
        return {{index, f32(1.0)}};
      return method == "linear" ? linear_taps(attrs, axis, index) : cubic_taps(attrs, axis, index);
    };
    Expr sum;
    for (const Tap& row : taps_of(rows, r)) {
      Expr line;
      for (const Tap& column : taps_of(columns, c)) {
        const Expr term = f32(element(i, row.index, column.index)) * column.weight;
        line = line ? line + term : term;
      }
      sum = sum ? sum + line * row.weight : line * row.weight;
    }
    return tenon::cast(x.dtype, sum);
  });
}

OpDef resize2d() {
  OpDef op;
  op.name = "image.resize2d";
  op.summary = "Images of another height and width.";
  op.inputs = {{"data", "of layout"}, {"size", "a shape: height and width"}};
  op.attrs = attrs_of<ResizeAttrs>();
  op.infer_type = infer_resize;
  op.lower = lower_resize;
  op.fusion = FusionKind::kInjective;
  op.source = "ONNX Resize-13";
  return op;
}

// ---- image.decode -------------------------------------------------------------------------------

struct DecodeAttrs {
  std::string pixel_format = "RGB";
  static auto table() {
    return std::tuple{
        attr<&DecodeAttrs::pixel_format>("pixel_format", "\"RGB\", \"BGR\" or \"Grayscale\"")};
  }
};

void check_encoded(const Call& call) {
  check_rank(call, 0, 1);
  if (!tensor_arg(call, 0)->dtype.is_void()) check_dtype(call, 0, kUInt8);
}

// The function of the runtime of the operator's name, on the bytes and `more`.
Value call_decoder(BlockBuilder& builder, const Call& call, std::vector<Value> more) {
  std::vector<Value> args = {make<ExternRef>("tenon." + call.op->name), call.args[0]};
  args.insert(args.end(), more.begin(), more.end());
  return builder.emit(make<Call>(find_op("call_pure_packed"), std::move(args), Attrs(),
                                 std::vector<Type>{call.op->infer_type(call)}, call.origin));
}

OpDef decode_size() {
  OpDef op;
  op.name = "image.decode_size";
  op.summary = "Height and width of a picture in the bytes of a file; 0 where they are none.";
  op.inputs = {{"encoded", "(bytes,), uint8"}};
  op.infer_type = [](const Call& call) -> Type {
    check_encoded(call);
    return make<TensorType>(std::vector<Expr>{int64(2)}, kInt64);
  };
  op.lower = [](BlockBuilder& builder, const Call& call) {
    return call_decoder(builder, call, {});
  };
  op.source = "ONNX ImageDecoder-20";
  return op;
}

OpDef decode() {
  OpDef op;
  op.name = "image.decode";
  op.summary =
      "The pixels of a BMP, JPEG, JPEG 2000, PNG, PNM, TIFF or WebP picture: (height, width, "
      "channels).";
  op.inputs = {{"encoded", "(bytes,), uint8"}, {"size", "a shape: height and width, which it has"}};
  op.attrs = attrs_of<DecodeAttrs>();
  op.infer_type = [](const Call& call) -> Type {
    const std::string format = attrs_as<DecodeAttrs>(call).pixel_format;
    check_choice(call, "pixel_format", format, {"RGB", "BGR", "Grayscale"});
    check_encoded(call);
    const auto size = dims_arg(call, 1);
    if (!size) return make<TensorType>(kUInt8, 3);
    if (size->size() != 2)
      throw CompileError(kBadArgument, call.origin,
                         "argument `size` of `image.decode` has {} numbers; expected 2",
                         size->size());
    return make<TensorType>(
        std::vector<Expr>{(*size)[0], (*size)[1], int64(format == "Grayscale" ? 1 : 3)}, kUInt8);
  };
  op.lower = [](BlockBuilder& builder, const Call& call) {
    const std::string format = attrs_as<DecodeAttrs>(call).pixel_format;
    const int64_t number = format == "RGB" ? 0 : format == "BGR" ? 1 : 2;
    return call_decoder(builder, call, {make<PrimValue>(int64(number))});
  };
  op.source = "ONNX ImageDecoder-20";
  return op;
}

}  // namespace

std::vector<OpDef> image_ops() { return {resize2d(), decode_size(), decode()}; }

}  // namespace tenon::graph
