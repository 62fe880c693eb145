// SPDX-License-Identifier: Apache-2.0
// Slices and padding.
#include <limits>

#include "tenon/arith/analyzer.h"
#include "tenon/graph/ops/define.h"

namespace tenon::graph {

namespace {

using Shape = std::vector<Expr>;

// ---- strided_slice ------------------------------------------------------------------------------

// The lesser (greater) of two, as one of them where that can be proved.
Expr lesser(const Expr& a, const Expr& b) {
  arith::Analyzer analyzer;
  if (analyzer.proves_less_equal(a, b)) return a;
  return analyzer.proves_less_equal(b, a) ? b : simplify_dim(min(a, b));
}
Expr greater(const Expr& a, const Expr& b) {
  arith::Analyzer analyzer;
  if (analyzer.proves_less_equal(a, b)) return b;
  return analyzer.proves_less_equal(b, a) ? a : simplify_dim(max(a, b));
}

// A bound as Python reads it: negative ones count from the end, then it is held in [least, most].
Expr place(const Expr& bound, const Expr& dim, const Expr& least, const Expr& most) {
  static constexpr int64_t kFar = int64_t{1} << 31;  // "to the end", whatever the dimension
  if (const auto value = as_int(bound)) {
    if (*value >= kFar - 1) return most;
    if (*value <= -kFar) return least;
    return greater(least, lesser(simplify_dim(*value < 0 ? dim + *value : bound), most));
  }
  arith::Analyzer analyzer;
  Expr from_start = bound;
  if (analyzer.proves(bound < int64(0))) {
    from_start = simplify_dim(dim + bound);
  } else if (!analyzer.proves_nonnegative(bound)) {
    from_start = select(bound < int64(0), dim + bound, bound);
  }
  return greater(least, lesser(from_start, most));
}

struct SliceAttrs {
  bool assume_inbound = false;
  static auto table() {
    return std::tuple{attr<&SliceAttrs::assume_inbound>(
        "assume_inbound",
        "begin and end of positive strides lie in the axis, and are not checked")};
  }
};

// What a slice takes of one axis: element i is begin + i * stride, i in [0, extent).
struct SliceAxis {
  size_t axis;
  Expr begin, extent;
  int64_t stride;
};

// Nothing where a bound is not known.
std::optional<std::vector<SliceAxis>> slice_axes(const Call& call, const TensorType& x) {
  const auto axes = dims_arg(call, 1), begin = dims_arg(call, 2), end = dims_arg(call, 3);
  std::optional<Shape> strides = Shape{};
  if (arg_or_null(call, 4)) strides = dims_arg(call, 4);
  if (!axes || !begin || !end || !strides) return std::nullopt;
  if (strides->empty()) strides->assign(axes->size(), int64(1));
  const auto numbers = as_ints(*axes), steps = as_ints(*strides);
  if (!numbers || !steps)
    throw CompileError(kUnsupported, call.origin, "`{}` with symbolic axes or strides",
                       call.op->name);
  if (begin->size() != numbers->size() || end->size() != numbers->size() ||
      steps->size() != numbers->size())
    throw CompileError(kBadArgument, call.origin,
                       "`{}` has {} axes, {} begins, {} ends and {} strides", call.op->name,
                       numbers->size(), begin->size(), end->size(), steps->size());
  const std::vector<size_t> places = axes_of(call, *numbers, x.ndim);
  std::vector<SliceAxis> out;
  for (size_t i = 0; i < places.size(); ++i) {
    const Expr& dim = (*x.shape)[places[i]];
    const int64_t stride = (*steps)[i];
    if (stride == 0 || stride == std::numeric_limits<int64_t>::min())
      throw CompileError(kBadArgument, call.origin, "`{}` has stride {}", call.op->name, stride);
    SliceAxis axis{places[i], {}, {}, stride};
    const Expr none = int64(0);
    if (stride > 0) {
      const bool inside = attrs_as<SliceAttrs>(call).assume_inbound;
      axis.begin = inside ? (*begin)[i] : place((*begin)[i], dim, none, dim);
      const Expr last = inside ? (*end)[i] : place((*end)[i], dim, none, dim);
      axis.extent = ceildiv(last - axis.begin, int64(stride));
    } else {
      axis.begin = place((*begin)[i], dim, int64(-1), dim - 1);
      // An end of -1 counts from the end of the axis; only what lies before that is "before 0".
      const Expr last = place((*end)[i], dim, int64(-1), dim - 1);
      axis.extent = ceildiv(axis.begin - last, int64(-stride));
    }
    axis.extent = greater(none, simplify_dim(axis.extent));
    out.push_back(axis);
  }
  return out;
}

Type infer_slice(const Call& call) {
  const Ref<TensorType> x = tensor_arg(call, 0);
  if (!x->shape) return x;
  const auto axes = slice_axes(call, *x);
  if (!axes) return make<TensorType>(x->dtype, x->ndim);
  Shape shape = *x->shape;
  for (const SliceAxis& axis : *axes) shape[axis.axis] = axis.extent;
  return tensor_of(shape, x->dtype, 0);
}

Value lower_slice(BlockBuilder& builder, const Call& call) {
  KernelOf kernel(builder, call);
  const Operand x = kernel.arg(0);
  const auto axes = slice_axes(call, *shaped_arg(call, 0));
  check(axes.has_value(), "a slice with a known result and unknown bounds");
  return kernel.emit_compute([&](const Indices& i) {
    Indices at = i;
    for (const SliceAxis& axis : *axes) at[axis.axis] = axis.begin + at[axis.axis] * axis.stride;
    return x(at);
  });
}

OpDef strided_slice() {
  OpDef op;
  op.name = "strided_slice";
  op.summary = "x[begin:end:stride] along each of some axes, as Python slices.";
  op.inputs = {OpInput{"x", "any shape"}.as_moved(),
               {"axes", "a tuple of integers"},
               {"begin", "a tuple of integers, or a shape"},
               {"end", "the same"},
               {"strides", "the same; constants", true}};
  op.attrs = attrs_of<SliceAttrs>();
  op.infer_type = infer_slice;
  op.lower = lower_slice;
  op.fusion = FusionKind::kInjective;
  op.source = "ONNX Slice-13";
  return op;
}

// Bounds held in tensors: known where these are constants.
std::vector<Value> constant_bounds(const Call& call) {
  std::vector<Value> out;
  for (size_t i = 1; i < 4; ++i) {
    const auto values = constant_ints(call.args[i]);
    if (!values) return {};
    out.push_back(make<ShapeExpr>(to_exprs(*values)));
  }
  return out;
}

Ref<Call> as_static_slice(const Call& call, std::vector<Value> bounds) {
  const int64_t ndim = tensor_arg(call, 0)->ndim;
  Shape axes;
  for (int64_t i = 0; i < ndim; ++i) axes.push_back(int64(i));
  return call_op("strided_slice",
                 {call.args[0], make<ShapeExpr>(axes), bounds[0], bounds[1], bounds[2]}, {},
                 call.origin);
}

OpDef dynamic_strided_slice() {
  OpDef op;
  op.name = "dynamic_strided_slice";
  op.summary = "strided_slice of every axis with bounds from int64 vectors.";
  op.inputs = {OpInput{"x", "any shape"}.as_moved()};
  for (const char* bound : {"begin", "end", "strides"})
    op.inputs.push_back(OpInput{bound, "(ndim,), int64"}.used_as(InputUse::kSteers));
  op.infer_type = [](const Call& call) -> Type {
    const Ref<TensorType> x = tensor_arg(call, 0);
    for (size_t i = 1; i < 4; ++i) {
      check_rank(call, i, 1);
      check_dtype(call, i, kInt64);
    }
    auto bounds = constant_bounds(call);
    if (bounds.empty() || !x->shape) return make<TensorType>(x->dtype, x->ndim);
    return type_of(as_static_slice(call, std::move(bounds)));
  };
  op.lower = [](BlockBuilder& builder, const Call& call) -> Value {
    auto bounds = constant_bounds(call);
    if (bounds.empty())
      throw CompileError(kUnsupported, call.origin,
                         "`dynamic_strided_slice` with bounds that only the run knows: its "
                         "result has no shape that is known before");
    const Ref<Call> slice = as_static_slice(call, std::move(bounds));
    return slice->op->lower(builder, *slice);
  };
  op.fusion = FusionKind::kInjective;
  return op;
}

// ---- pad ----------------------------------------------------------------------------------------

struct PadAttrs {
  std::vector<int64_t> pad_width;
  std::string pad_mode = "constant";
  double pad_value = 0;
  static auto table() {
    return std::tuple{
        required<&PadAttrs::pad_width>("pad_width", "before and after axis 0, axis 1, ..."),
        attr<&PadAttrs::pad_mode>("pad_mode",
                                  "\"constant\", \"reflect\" (without the edge), \"edge\" "
                                  "(\"replicate\" is the same) or \"circular\""),
        attr<&PadAttrs::pad_value>("pad_value", "of mode constant")};
  }
};

struct PadWidths {
  std::vector<int64_t> before, after;

  PadWidths(const Call& call, const std::vector<int64_t>& widths, int64_t ndim) {
    if (static_cast<int64_t>(widths.size()) != 2 * ndim)
      throw CompileError(kBadAttribute, call.origin,
                         "attribute `pad_width` of `nn.pad` has {} numbers; expected {}",
                         widths.size(), 2 * ndim);
    for (size_t i = 0; i < widths.size(); i += 2) {
      before.push_back(widths[i]);
      after.push_back(widths[i + 1]);
    }
  }
};

Type infer_pad(const Call& call) {
  const Ref<TensorType> x = tensor_arg(call, 0);
  const auto attrs = attrs_as<PadAttrs>(call);
  const std::string& mode = attrs.pad_mode;
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "replicate" &&
      mode != "circular")
    throw CompileError(kBadAttribute, call.origin,
                       "attribute `pad_mode` of `nn.pad` is \"{}\"; expected \"constant\", "
                       "\"reflect\", \"edge\", \"replicate\" or \"circular\"",
                       mode);
  if (x->ndim < 0) return x;
  const PadWidths pads(call, attrs.pad_width, x->ndim);
  if (!x->shape) return x;
  Shape shape = *x->shape;
  for (size_t d = 0; d < shape.size(); ++d) {
    const auto known = as_int(shape[d]);
    shape[d] = simplify_dim(shape[d] + (pads.before[d] + pads.after[d]));
    const int64_t most = std::max(pads.before[d], pads.after[d]);
    const bool empty = known && mode != "constant" && most > 0 && *known == 0;
    if ((as_int(shape[d]) && *as_int(shape[d]) < 0) || empty ||
        (known && mode == "reflect" && most >= *known && most > 0))
      throw CompileError(kBadAttribute, call.origin,
                         "`nn.pad` in mode {} by {} and {} of an axis of {}", mode, pads.before[d],
                         pads.after[d], tenon::str((*x->shape)[d]));
  }
  return make<TensorType>(std::move(shape), x->dtype);
}

Value lower_pad(BlockBuilder& builder, const Call& call) {
  KernelOf kernel(builder, call);
  const Operand x = kernel.arg(0);
  const auto attrs = attrs_as<PadAttrs>(call);
  const std::string& mode = attrs.pad_mode;
  const PadWidths pads(call, attrs.pad_width, static_cast<int64_t>(x.ndim()));
  const Expr value = imm(x.dtype, attrs.pad_value);
  return kernel.emit_compute([&](const Indices& i) {
    Indices at = i;
    Expr inside = boolean(true);
    for (size_t d = 0; d < at.size(); ++d) {
      if (pads.before[d] == 0 && pads.after[d] == 0) continue;
      const Expr& dim = x.shape[d];
      at[d] = at[d] - pads.before[d];
      if (mode == "constant") {
        if (pads.before[d] > 0) inside = logical_and(inside, at[d] >= int64(0));
        if (pads.after[d] > 0) inside = logical_and(inside, at[d] < dim);
      } else if (mode == "edge" || mode == "replicate") {
        at[d] = max(int64(0), min(at[d], dim - 1));
      } else if (mode == "circular") {
        at[d] = floormod(at[d], dim);
      } else {
        const Expr positive = select(at[d] < int64(0), int64(0) - at[d], at[d]);
        at[d] = select(positive < dim, positive, (dim - 1) * 2 - positive);
      }
    }
    return mode == "constant" ? if_then_else(inside, x(at), value) : x(at);
  });
}

OpDef pad() {
  OpDef op;
  op.name = "nn.pad";
  op.summary = "Adds elements before and after each axis, or where a width is negative drops them.";
  op.inputs = {{"data", "any shape"}};
  op.attrs = attrs_of<PadAttrs>();
  op.infer_type = infer_pad;
  op.lower = lower_pad;
  op.fusion = FusionKind::kInjective;
  op.source = "ONNX Pad-19";
  return op;
}

}  // namespace

std::vector<OpDef> slice_ops() { return {strided_slice(), dynamic_strided_slice(), pad()}; }

}  // namespace tenon::graph
