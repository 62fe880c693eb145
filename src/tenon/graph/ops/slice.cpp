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
  Expr begin, extent, stride;
};

// Of an axis of `dim`, by a positive stride.
SliceAxis forward(const Expr& begin, const Expr& end, const Expr& dim, const Expr& stride,
                  bool inside) {
  const Expr none = int64(0);
  const Expr first = inside ? begin : place(begin, dim, none, dim);
  const Expr last = inside ? end : place(end, dim, none, dim);
  return {0, first, greater(none, simplify_dim(ceildiv(last - first, stride))), {}};
}

// By a negative one, of `width`.
SliceAxis backward(const Expr& begin, const Expr& end, const Expr& dim, const Expr& width) {
  const Expr first = place(begin, dim, int64(-1), dim - 1);
  // An end of -1 counts from the end of the axis; only what lies before that is "before 0".
  const Expr last = place(end, dim, int64(-1), dim - 1);
  return {0, first, greater(int64(0), simplify_dim(ceildiv(first - last, width))), {}};
}

// Nothing where a bound is not known.
std::optional<std::vector<SliceAxis>> slice_axes(const Call& call, const TensorType& x) {
  const auto axes = dims_arg(call, 1), begin = dims_arg(call, 2), end = dims_arg(call, 3);
  std::optional<Shape> strides = Shape{};
  if (arg_or_null(call, 4)) strides = dims_arg(call, 4);
  if (!axes || !begin || !end || !strides) return std::nullopt;
  if (strides->empty()) strides->assign(axes->size(), int64(1));
  const auto numbers = as_ints(*axes);
  if (!numbers)
    throw CompileError(kUnsupported, call.origin, "`{}` with symbolic axes", call.op->name);
  if (begin->size() != numbers->size() || end->size() != numbers->size() ||
      strides->size() != numbers->size())
    throw CompileError(kBadArgument, call.origin,
                       "`{}` has {} axes, {} begins, {} ends and {} strides", call.op->name,
                       numbers->size(), begin->size(), end->size(), strides->size());
  const std::vector<size_t> places = axes_of(call, *numbers, x.ndim);
  std::vector<SliceAxis> out;
  for (size_t i = 0; i < places.size(); ++i) {
    const Expr &dim = (*x.shape)[places[i]], &stride = (*strides)[i];
    const auto known = as_int(stride);
    if (known == 0 || known == std::numeric_limits<int64_t>::min())
      throw CompileError(kBadArgument, call.origin, "`{}` has stride {}", call.op->name, *known);
    const bool inside = attrs_as<SliceAttrs>(call).assume_inbound;
    SliceAxis axis;
    if (known) {
      axis = *known > 0 ? forward((*begin)[i], (*end)[i], dim, stride, inside)
                        : backward((*begin)[i], (*end)[i], dim, int64(-*known));
    } else {
      // The sign of the stride is known only at run time.
      const SliceAxis up = forward((*begin)[i], (*end)[i], dim, max(stride, int64(1)), inside),
                      down =
                          backward((*begin)[i], (*end)[i], dim, max(int64(0) - stride, int64(1)));
      const Expr is_up = stride > int64(0);
      axis = {0, select(is_up, up.begin, down.begin), select(is_up, up.extent, down.extent), {}};
    }
    axis.axis = places[i];
    axis.stride = stride;
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
  // What is said to lie inside is checked once, not index by index.
  for (const SliceAxis& axis : *axes) {
    if (!attrs_as<SliceAttrs>(call).assume_inbound || !is_int(axis.stride, 1)) continue;
    const Expr inside =
        logical_and(axis.begin >= int64(0), axis.begin + axis.extent <= x.shape[axis.axis]);
    if (arith::Analyzer().proves(inside)) continue;
    kernel.append(tir::define(
        "check_bounds", {}, {},
        make<tir::Assert>(arith::simplify(inside),
                          fmt::format("{}: the slice of axis {} does not lie inside of it",
                                      name_for_messages(call), axis.axis))));
  }
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
               {"strides", "the same; not 0", true}};
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
        attr<&PadAttrs::pad_width>("pad_width", "before and after axis 0, axis 1, ..."),
        attr<&PadAttrs::pad_mode>("pad_mode",
                                  "\"constant\", \"reflect\" (without the edge), \"edge\" "
                                  "(\"replicate\" is the same) or \"circular\""),
        attr<&PadAttrs::pad_value>("pad_value", "of mode constant")};
  }
};

struct PadWidths {
  Shape before, after;
};

// From the attribute, or in its place from argument `widths`; nothing where its values are not
// known.
std::optional<PadWidths> pad_widths(const Call& call, int64_t ndim) {
  std::optional<Shape> widths = to_exprs(attrs_as<PadAttrs>(call).pad_width);
  const bool is_argument = static_cast<bool>(arg_or_null(call, 1));
  if (is_argument) widths = dims_arg(call, 1);
  if (!widths) return std::nullopt;
  if (static_cast<int64_t>(widths->size()) != 2 * ndim)
    throw CompileError(kBadAttribute, call.origin, "{} of `nn.pad` has {} numbers; expected {}",
                       is_argument ? "argument `widths`" : "attribute `pad_width`", widths->size(),
                       2 * ndim);
  PadWidths out;
  for (size_t i = 0; i < widths->size(); i += 2) {
    out.before.push_back((*widths)[i]);
    out.after.push_back((*widths)[i + 1]);
  }
  return out;
}

// An axis that `mode` cannot pad by constant widths.
void check_pad(const Call& call, const std::string& mode, const Expr& dim, int64_t before,
               int64_t after) {
  const auto known = as_int(dim), padded = as_int(simplify_dim(dim + (before + after)));
  const int64_t most = std::max(before, after);
  const bool empty = known && mode != "constant" && most > 0 && *known == 0;
  if ((padded && *padded < 0) || empty ||
      (known && mode == "reflect" && most >= *known && most > 0))
    throw CompileError(kBadAttribute, call.origin,
                       "`nn.pad` in mode {} by {} and {} of an axis of {}", mode, before, after,
                       tenon::str(dim));
}

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
  if (arg_or_null(call, 2)) {
    check_rank(call, 2, 0);
    check_dtype(call, 2, x->dtype);
  }
  if (x->ndim < 0) return x;
  const auto pads = pad_widths(call, x->ndim);
  if (!x->shape || !pads) return make<TensorType>(x->dtype, x->ndim);
  Shape shape = *x->shape;
  for (size_t d = 0; d < shape.size(); ++d) {
    const auto before = as_int(pads->before[d]), after = as_int(pads->after[d]);
    if (before && after) check_pad(call, mode, shape[d], *before, *after);
    shape[d] = before && after ? simplify_dim(shape[d] + (*before + *after))
                               : simplify_dim(shape[d] + pads->before[d] + pads->after[d]);
  }
  return make<TensorType>(std::move(shape), x->dtype);
}

Value lower_pad(BlockBuilder& builder, const Call& call) {
  KernelOf kernel(builder, call);
  const Operand x = kernel.arg(0);
  const auto attrs = attrs_as<PadAttrs>(call);
  const std::string& mode = attrs.pad_mode;
  const auto pads = pad_widths(call, static_cast<int64_t>(x.ndim()));
  check(pads.has_value(), "a pad with a known result and unknown widths");
  std::optional<Operand> given;
  if (arg_or_null(call, 2)) given = kernel.arg(2);
  const Expr value = given ? (*given)({}) : imm(x.dtype, attrs.pad_value);
  return kernel.emit_compute([&](const Indices& i) {
    Indices at = i;
    Expr inside = boolean(true);
    for (size_t d = 0; d < at.size(); ++d) {
      const auto before = as_int(pads->before[d]), after = as_int(pads->after[d]);
      if (before == 0 && after == 0) continue;
      const Expr& dim = x.shape[d];
      at[d] = before ? at[d] - *before : at[d] - pads->before[d];
      if (mode == "constant") {
        if (!before || *before > 0) inside = logical_and(inside, at[d] >= int64(0));
        if (!after || *after > 0) inside = logical_and(inside, at[d] < dim);
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
  op.inputs = {{"data", "any shape"},
               {"widths", "a shape, in place of attribute pad_width", true},
               {"value", "(), of data's dtype, in place of attribute pad_value", true}};
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
