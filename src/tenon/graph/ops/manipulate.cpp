// SPDX-License-Identifier: Apache-2.0
// Operators that give the elements of their input another place: shapes, axes, pieces.
#include <algorithm>

#include "tenon/arith/analyzer.h"
#include "tenon/graph/assumed_dims.h"
#include "tenon/graph/ops/define.h"
#include "tenon/tir/concat.h"

namespace tenon::graph {

namespace {

using Shape = std::vector<Expr>;

// ---- reshape ------------------------------------------------------------------------------------

// `dims` with its one -1 replaced by what is left of the elements of `shape`.
Shape resolve_shape(const Call& call, Shape dims, const Shape& shape) {
  size_t open = dims.size();
  for (size_t i = 0; i < dims.size(); ++i) {
    const auto value = as_int(dims[i]);
    if (!value || *value >= 0) continue;
    if (*value != -1 || open != dims.size())
      throw CompileError(kBadArgument, call.origin,
                         "argument `shape` of `{}` is {}; expected no negative number but one -1",
                         call.op->name, tenon::str(dims));
    open = i;
  }
  if (open < dims.size()) {
    // Dimensions found on both sides cancel.
    Shape above = shape, below = dims;
    below.erase(below.begin() + static_cast<std::ptrdiff_t>(open));
    std::erase_if(below, [&](const Expr& dim) {
      if (is_int(dim, 0)) return false;
      const auto same = std::find_if(above.begin(), above.end(), [&](const Expr& other) {
        return dims_agree(dim, other) == DimsAgree::kYes;
      });
      if (same == above.end()) return false;
      above.erase(same);
      return true;
    });
    const Expr count = simplify_dim(tir::element_count(above));
    const Expr divisor = simplify_dim(tir::element_count(below));
    if (is_int(divisor, 0) || !may_agree(simplify_dim(floormod(count, divisor)), int64(0)))
      throw CompileError(kShapeMismatch, call.origin, "`{}` cannot give {} elements the shape {}",
                         call.op->name, tenon::str(tir::element_count(shape)), tenon::str(dims));
    dims[open] = simplify_dim(floordiv(count, divisor));
    return dims;
  }
  const Expr before = simplify_dim(tir::element_count(shape));
  const Expr after = simplify_dim(tir::element_count(dims));
  if (!may_agree(before, after))
    throw CompileError(kShapeMismatch, call.origin,
                       "`{}` of shape {} with {} elements to shape {} with {}", call.op->name,
                       tenon::str(shape), tenon::str(before), tenon::str(dims), tenon::str(after));
  return dims;
}

// The index into `from` of the element at `at` of `to`, both row-major with the same elements.
// Dimensions whose products agree are paired in groups, so that most indices need no division.
Indices reshaped_index(const Shape& from, const Shape& to, const Indices& at) {
  Indices out;
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    // The smallest group that has equal products; all that is left where none has.
    size_t rows = from.size() - i, columns = to.size() - j;
    const size_t most = rows + columns;
    for (size_t total = 2; total < most; ++total) {
      bool found = false;
      for (size_t p = 1; p < total && !found; ++p) {
        const size_t q = total - p;
        if (p > from.size() - i || q > to.size() - j) continue;
        const auto slice = [](const Shape& shape, size_t start, size_t count) {
          const auto begin = shape.begin() + static_cast<std::ptrdiff_t>(start);
          return Shape(begin, begin + static_cast<std::ptrdiff_t>(count));
        };
        const Expr a = simplify_dim(tir::element_count(slice(from, i, p)));
        const Expr b = simplify_dim(tir::element_count(slice(to, j, q)));
        if (dims_agree(a, b) != DimsAgree::kYes) continue;
        rows = p;
        columns = q;
        found = true;
      }
      if (found) break;
    }
    if (rows == 1 && columns == 1) {
      out.push_back(at[j]);
    } else {
      Expr flat = int64(0);
      for (size_t c = j; c < j + columns; ++c) flat = flat * to[c] + at[c];
      Indices group(rows);
      for (size_t r = rows; r-- > 0;) {
        const Expr& dim = from[i + r];
        group[r] = is_int(dim, 1) ? int64(0) : r == 0 ? flat : floormod(flat, dim);
        flat = floordiv(flat, dim);
      }
      out.insert(out.end(), group.begin(), group.end());
    }
    i += rows;
    j += columns;
  }
  return out;
}

Value lower_as_reshape(BlockBuilder& builder, const Call& call) {
  KernelOf kernel(builder, call);
  const Operand x = kernel.arg(0);
  return kernel.emit_compute(
      [&](const Indices& i) { return x(reshaped_index(x.shape, kernel.shape(), i)); });
}

OpDef injective(std::string name, std::string summary, std::vector<OpInput> inputs,
                std::vector<OpAttr> attrs, std::function<Type(const Call&)> infer,
                LowerRule lower) {
  OpDef op;
  op.name = std::move(name);
  op.summary = std::move(summary);
  op.inputs = std::move(inputs);
  op.attrs = std::move(attrs);
  op.infer_type = std::move(infer);
  op.lower = std::move(lower);
  op.fusion = FusionKind::kInjective;
  return op;
}

Type infer_reshape(const Call& call) {
  const Ref<TensorType> x = tensor_arg(call, 0);
  const auto dims = dims_arg(call, 1);
  if (!dims) {
    const Type type = type_of(call.args[1]);
    const auto* shape = type.as<ShapeType>();
    return make<TensorType>(x->dtype, shape ? shape->ndim : -1);
  }
  const bool open = std::any_of(dims->begin(), dims->end(), [](const Expr& dim) {
    const auto value = as_int(dim);
    return value && *value < 0;
  });
  if (!x->shape)
    return open ? make<TensorType>(x->dtype, static_cast<int64_t>(dims->size()))
                : make<TensorType>(*dims, x->dtype);
  return tensor_of(resolve_shape(call, *dims, *x->shape), x->dtype, 0);
}

// ---- axes ---------------------------------------------------------------------------------------

struct PermuteAttrs {
  std::optional<std::vector<int64_t>> axes;
  static auto table() {
    return std::tuple{
        attr<&PermuteAttrs::axes>("axes", "result axis i is input axis axes[i]; None: reversed")};
  }
};

std::vector<size_t> permutation(const Call& call, int64_t ndim) {
  const auto axes = attrs_as<PermuteAttrs>(call).axes;
  std::vector<size_t> out;
  if (!axes) {
    for (int64_t i = ndim; i-- > 0;) out.push_back(static_cast<size_t>(i));
    return out;
  }
  if (static_cast<int64_t>(axes->size()) != ndim)
    throw CompileError(kBadAttribute, call.origin, "axes {} of `{}` do not permute rank {}",
                       AttrValue(*axes).str(), call.op->name, ndim);
  return axes_of(call, *axes, ndim);
}

Type infer_permute(const Call& call) {
  const Ref<TensorType> x = tensor_arg(call, 0);
  if (x->ndim < 0) return x;
  const std::vector<size_t> axes = permutation(call, x->ndim);
  if (!x->shape) return x;
  Shape shape;
  for (const size_t axis : axes) shape.push_back((*x->shape)[axis]);
  return make<TensorType>(std::move(shape), x->dtype);
}

Value lower_permute(BlockBuilder& builder, const Call& call) {
  KernelOf kernel(builder, call);
  const Operand x = kernel.arg(0);
  const std::vector<size_t> axes = permutation(call, static_cast<int64_t>(x.ndim()));
  return kernel.emit_compute([&](const Indices& i) {
    Indices at(i.size());
    for (size_t d = 0; d < axes.size(); ++d) at[axes[d]] = i[d];
    return x(at);
  });
}

struct ExpandDimsAttrs {
  std::vector<int64_t> axis;
  static auto table() {
    return std::tuple{required<&ExpandDimsAttrs::axis>("axis", "their places in the result")};
  }
};

Type infer_expand_dims(const Call& call) {
  const Ref<TensorType> x = tensor_arg(call, 0);
  const std::vector<int64_t> axes = attrs_as<ExpandDimsAttrs>(call).axis;
  const auto added = static_cast<int64_t>(axes.size());
  if (x->ndim < 0) return make<TensorType>(x->dtype, -1);
  const std::vector<size_t> places = axes_of(call, axes, x->ndim + added);
  if (!x->shape) return make<TensorType>(x->dtype, x->ndim + added);
  Shape shape;
  size_t next = 0;
  for (size_t i = 0; i < static_cast<size_t>(x->ndim + added); ++i)
    shape.push_back(contains(places, i) ? int64(1) : (*x->shape)[next++]);
  return make<TensorType>(std::move(shape), x->dtype);
}

struct SqueezeAttrs {
  std::optional<std::vector<int64_t>> axis;
  static auto table() {
    return std::tuple{attr<&SqueezeAttrs::axis>("axis", "None: all that are 1")};
  }
};

Type infer_squeeze(const Call& call) {
  const Ref<TensorType> x = tensor_arg(call, 0);
  const auto axes = attrs_as<SqueezeAttrs>(call).axis;
  if (x->ndim < 0) return make<TensorType>(x->dtype, -1);
  std::vector<size_t> dropped;
  if (axes) {
    dropped = axes_of(call, *axes, x->ndim);
    for (const size_t axis : dropped)
      if (x->shape) check_dim(call, 0, (*x->shape)[axis], int64(1), fmt::format("axis {}", axis));
  }
  if (!x->shape)
    return make<TensorType>(x->dtype,
                            axes ? x->ndim - static_cast<int64_t>(dropped.size()) : int64_t{-1});
  for (size_t i = 0; !axes && i < x->shape->size(); ++i)
    if (is_int((*x->shape)[i], 1)) dropped.push_back(i);
  return make<TensorType>(reduced_shape(*x->shape, dropped, false), x->dtype);
}

Type infer_flatten(const Call& call) {
  const Ref<TensorType> x = tensor_arg(call, 0);
  if (!x->shape) return make<TensorType>(x->dtype, 1);
  return tensor_of(Shape{tir::element_count(*x->shape)}, x->dtype, 1);
}

// ---- broadcast_to, tile, repeat, flip -----------------------------------------------------------

Type infer_broadcast_to(const Call& call) {
  const Ref<TensorType> x = tensor_arg(call, 0);
  const auto dims = dims_arg(call, 1);
  if (!dims) return make<TensorType>(x->dtype, -1);
  if (x->shape) {
    const auto fail = [&] {
      return CompileError(kShapeMismatch, call.origin, "`broadcast_to` of shape {} to {}",
                          tenon::str(*x->shape), tenon::str(*dims));
    };
    if (x->shape->size() > dims->size()) throw fail();
    for (size_t i = 0; i < x->shape->size(); ++i) {
      const Expr& have = (*x->shape)[x->shape->size() - 1 - i];
      const Expr& want = (*dims)[dims->size() - 1 - i];
      if (!is_int(have, 1) && dims_agree(have, want) == DimsAgree::kNo) throw fail();
    }
  }
  return make<TensorType>(*dims, x->dtype);
}

Value lower_broadcast_to(BlockBuilder& builder, const Call& call) {
  KernelOf kernel(builder, call);
  const Operand x = kernel.arg(0);
  const Shape out = *dims_arg(call, 1);
  return kernel.emit_compute([&](const Indices& i) {
    Indices at(i.end() - static_cast<std::ptrdiff_t>(x.ndim()), i.end());
    for (size_t d = 0; d < at.size(); ++d) {
      const Expr& dim = x.shape[d];
      if (is_int(dim, 1)) {
        at[d] = int64(0);
      } else if (!arith::proves_equal(dim, out[out.size() - at.size() + d])) {
        at[d] = select(eq(dim, int64(1)), int64(0), at[d]);  // only the run knows which it is
      }
    }
    return x(at);
  });
}

struct TileAttrs {
  std::vector<int64_t> repeats;
  static auto table() {
    return std::tuple{
        required<&TileAttrs::repeats>("repeats", "for each axis, aligned at the right")};
  }
};

Type infer_tile(const Call& call) {
  const Ref<TensorType> x = tensor_arg(call, 0);
  std::vector<int64_t> repeats = attrs_as<TileAttrs>(call).repeats;
  for (const int64_t repeat : repeats)
    if (repeat < 0)
      throw CompileError(kBadAttribute, call.origin, "`tile` has repeats {}; expected none below 0",
                         AttrValue(repeats).str());
  if (!x->shape)
    return make<TensorType>(
        x->dtype, x->ndim < 0 ? -1 : std::max(x->ndim, static_cast<int64_t>(repeats.size())));
  Shape shape = *x->shape;
  while (shape.size() < repeats.size()) shape.insert(shape.begin(), int64(1));
  while (repeats.size() < shape.size()) repeats.insert(repeats.begin(), 1);
  for (size_t i = 0; i < shape.size(); ++i) shape[i] = shape[i] * repeats[i];
  return tensor_of(shape, x->dtype, 0);
}

Value lower_tile(BlockBuilder& builder, const Call& call) {
  KernelOf kernel(builder, call);
  const Operand x = kernel.arg(0);
  return kernel.emit_compute([&](const Indices& i) {
    Indices at(i.end() - static_cast<std::ptrdiff_t>(x.ndim()), i.end());
    for (size_t d = 0; d < at.size(); ++d) {
      const Expr& wide = kernel.shape()[i.size() - at.size() + d];
      at[d] = is_int(x.shape[d], 1)                             ? int64(0)
              : dims_agree(x.shape[d], wide) == DimsAgree::kYes ? at[d]
                                                                : floormod(at[d], x.shape[d]);
    }
    return x(at);
  });
}

struct RepeatAttrs {
  int64_t repeats = 1;
  std::optional<int64_t> axis;
  static auto table() {
    return std::tuple{required<&RepeatAttrs::repeats>("repeats", "of each element"),
                      attr<&RepeatAttrs::axis>("axis", "None: of the flattened tensor")};
  }
};

Type infer_repeat(const Call& call) {
  const Ref<TensorType> x = tensor_arg(call, 0);
  const auto [repeats, axis] = attrs_as<RepeatAttrs>(call);
  if (repeats < 0)
    throw CompileError(kBadAttribute, call.origin, "`repeat` has repeats {}; expected at least 0",
                       repeats);
  if (!x->shape) return make<TensorType>(x->dtype, axis ? x->ndim : int64_t{1});
  if (!axis) return tensor_of(Shape{tir::element_count(*x->shape) * repeats}, x->dtype, 1);
  Shape shape = *x->shape;
  const size_t at = axis_of(call, *axis, x->ndim);
  shape[at] = shape[at] * repeats;
  return tensor_of(shape, x->dtype, 0);
}

Value lower_repeat(BlockBuilder& builder, const Call& call) {
  KernelOf kernel(builder, call);
  const Operand x = kernel.arg(0);
  const auto attrs = attrs_as<RepeatAttrs>(call);
  const int64_t repeats = attrs.repeats;
  const auto axis = attrs.axis;
  return kernel.emit_compute([&](const Indices& i) {
    if (!axis)
      return x(reshaped_index(x.shape, {tir::element_count(x.shape)}, {floordiv(i[0], repeats)}));
    Indices at = i;
    const size_t d = axis_of(call, *axis, static_cast<int64_t>(x.ndim()));
    at[d] = floordiv(at[d], repeats);
    return x(at);
  });
}

// ---- concat, split ------------------------------------------------------------------------------

struct ConcatAttrs {
  int64_t axis = 0;
  static auto table() { return std::tuple{attr<&ConcatAttrs::axis>("axis", "joined")}; }
};

Type infer_concat(const Call& call) {
  const auto tensors = tensors_arg(call, 0);
  if (tensors.empty()) throw CompileError(kBadArgument, call.origin, "`concat` of no tensors");
  const Ref<TensorType> first = tensors[0];
  int64_t ndim = -1;
  bool shapes = true;
  for (const Ref<TensorType>& t : tensors) {
    if (t->dtype != first->dtype)
      throw CompileError(kDTypeMismatch, call.origin, "tensors of `concat` have dtypes {} and {}",
                         first->dtype.str(), t->dtype.str());
    if (t->ndim >= 0 && ndim >= 0 && t->ndim != ndim)
      throw CompileError(kRankMismatch, call.origin, "tensors of `concat` are {} and {}",
                         str(first), str(t));
    ndim = std::max(ndim, t->ndim);
    shapes = shapes && t->shape;
  }
  if (ndim < 0) return make<TensorType>(first->dtype, -1);
  const size_t axis = axis_of(call, attrs_as<ConcatAttrs>(call).axis, ndim);
  if (!shapes) return make<TensorType>(first->dtype, ndim);
  Shape shape = *first->shape;
  for (size_t i = 1; i < tensors.size(); ++i) {
    for (size_t d = 0; d < shape.size(); ++d) {
      const Expr& dim = (*tensors[i]->shape)[d];
      if (d == axis) {
        shape[d] = shape[d] + dim;
      } else if (!may_agree(shape[d], dim)) {
        throw CompileError(kShapeMismatch, call.origin,
                           "tensors of `concat` along axis {} are {} and {}", axis, str(first),
                           str(tensors[i]));
      }
    }
  }
  return tensor_of(shape, first->dtype, ndim);
}

Value lower_concat(BlockBuilder& builder, const Call& call) {
  KernelOf kernel(builder, call);
  std::vector<Operand> tensors;
  for (const Value& value : tuple_values(call.args[0])) {
    const Operand tensor = kernel.value(value, fmt::format("x{}", tensors.size()));
    if (!is_int(tir::element_count(tensor.shape), 0)) tensors.push_back(tensor);
  }
  if (tensors.empty()) tensors.push_back(kernel.value(tuple_values(call.args[0])[0], "x0"));
  const size_t axis =
      axis_of(call, attrs_as<ConcatAttrs>(call).axis, static_cast<int64_t>(kernel.shape().size()));
  kernel.set_attr(tir::kConcatAxis, static_cast<int64_t>(axis));
  return kernel.emit_compute([&](const Indices& i) {
    // From the last tensor to the first: each takes what lies below the start of the next.
    std::vector<Expr> starts = {int64(0)};
    for (const Operand& tensor : tensors)
      starts.push_back(simplify_dim(starts.back() + tensor.shape[axis]));
    Expr element;
    for (size_t t = tensors.size(); t-- > 0;) {
      Indices at = i;
      at[axis] = at[axis] - starts[t];
      const Expr own = tensors[t](at);
      element = element ? if_then_else(i[axis] < starts[t + 1], own, element) : own;
    }
    return element;
  });
}

struct SplitAttrs {
  AttrValue indices_or_sections;
  int64_t axis = 0;
  static auto table() {
    return std::tuple{
        required<&SplitAttrs::indices_or_sections>(
            "indices_or_sections", "number of parts, or where each but the first begins"),
        attr<&SplitAttrs::axis>("axis", "cut")};
  }
};

// The ranges of a split along its axis: [starts[i], starts[i + 1]).
std::vector<Expr> split_starts(const Call& call, const Expr& extent) {
  const AttrValue how = attrs_as<SplitAttrs>(call).indices_or_sections;
  std::vector<Expr> starts = {int64(0)};
  if (const auto* sections = how.as<int64_t>()) {
    if (*sections < 1 || *sections > 1 << 20)
      throw CompileError(kBadAttribute, call.origin, "`split` into {} sections", *sections);
    const auto whole = as_int(extent);
    // As NumPy's array_split of equal parts, the last one smaller.
    const Expr part = simplify_dim(ceildiv(extent, int64(*sections)));
    for (int64_t i = 1; i < *sections; ++i)
      starts.push_back(whole ? min(part * i, extent) : simplify_dim(min(part * i, extent)));
  } else if (std::vector<int64_t> indices; AttrTraits<std::vector<int64_t>>::read(how, indices)) {
    for (const int64_t index : indices) {
      const Expr start = int64(index);
      const auto before = as_int(starts.back());
      const auto whole = as_int(extent);
      if ((before && index < *before) || (whole && index > *whole))
        throw CompileError(kBadAttribute, call.origin,
                           "`split` at {} of an axis of {}; expected ascending indices inside",
                           AttrValue(indices).str(), tenon::str(extent));
      starts.push_back(start);
    }
  } else {
    throw CompileError(kBadAttribute, call.origin,
                       "attribute `indices_or_sections` of `split` is {}; expected an integer or a "
                       "list of integers",
                       how.str());
  }
  starts.push_back(extent);
  return starts;
}

Type infer_split(const Call& call) {
  const Ref<TensorType> x = tensor_arg(call, 0);
  if (!x->shape)
    throw CompileError(kUnsupported, call.origin, "`split` of {}, whose shape is not known",
                       str(x));
  const size_t axis = axis_of(call, attrs_as<SplitAttrs>(call).axis, x->ndim);
  const std::vector<Expr> starts = split_starts(call, (*x->shape)[axis]);
  std::vector<Type> parts;
  for (size_t i = 0; i + 1 < starts.size(); ++i) {
    Shape shape = *x->shape;
    shape[axis] = starts[i + 1] - starts[i];
    parts.push_back(tensor_of(shape, x->dtype, 0));
  }
  return make<TupleType>(std::move(parts));
}

Value lower_split(BlockBuilder& builder, const Call& call) {
  KernelOf kernel(builder, call);
  const Operand x = kernel.arg(0);
  const size_t axis =
      axis_of(call, attrs_as<SplitAttrs>(call).axis, static_cast<int64_t>(x.ndim()));
  const std::vector<Expr> starts = split_starts(call, x.shape[axis]);
  std::vector<Operand> parts;
  for (size_t p = 0; p + 1 < starts.size(); ++p)
    parts.push_back(
        kernel.compute(fmt::format("part{}", p), kernel.shape(p), [&](const Indices& i) {
          Indices at = i;
          at[axis] = at[axis] + starts[p];
          return x(at);
        }));
  const Value out = kernel.emit(parts);
  return parts.size() == 1 ? Value(make<Tuple>(std::vector<Value>{out})) : out;
}

// ---- flip

struct FlipAttrs {
  int64_t axis = 0;
  static auto table() { return std::tuple{required<&FlipAttrs::axis>("axis", "reversed")}; }
};

Type infer_flip(const Call& call) {
  const Ref<TensorType> x = tensor_arg(call, 0);
  if (x->ndim >= 0) (void)axis_of(call, attrs_as<FlipAttrs>(call).axis, x->ndim);
  return x;
}

Value lower_flip(BlockBuilder& builder, const Call& call) {
  KernelOf kernel(builder, call);
  const Operand x = kernel.arg(0);
  const size_t axis = axis_of(call, attrs_as<FlipAttrs>(call).axis, static_cast<int64_t>(x.ndim()));
  return kernel.emit_compute([&](const Indices& i) {
    Indices at = i;
    at[axis] = x.shape[axis] - 1 - at[axis];
    return x(at);
  });
}

}  // namespace

std::vector<OpDef> manipulate_ops() {
  const OpInput moved = OpInput{"x", "any shape"}.as_moved();
  const std::vector<OpInput> x = {moved};
  std::vector<OpDef> ops;
  const auto view = [&](OpDef op) -> OpDef& {
    op.traits.view = true;
    ops.push_back(std::move(op));
    return ops.back();
  };
  OpDef& reshape =
      view(injective("reshape", "The elements in order, in another shape; one -1 is inferred.",
                     {moved, {"shape", "a shape"}}, {}, infer_reshape, lower_as_reshape));
  reshape.traits.legal = true;
  reshape.layout = LayoutRule::kFlatten;
  view(injective("flatten", "The elements in order, in one dimension.", x, {}, infer_flatten,
                 lower_as_reshape))
      .layout = LayoutRule::kFlatten;
  view(injective("expand_dims", "Adds axes of extent 1.", x, attrs_of<ExpandDimsAttrs>(),
                 infer_expand_dims, lower_as_reshape));
  view(injective("squeeze", "Drops axes of extent 1.", x, attrs_of<SqueezeAttrs>(), infer_squeeze,
                 lower_as_reshape))
      .layout = LayoutRule::kFlatten;
  OpDef permute = injective("permute_dims", "Reorders the axes of a tensor.", x,
                            attrs_of<PermuteAttrs>(), infer_permute, lower_permute);
  permute.onnx = {"Transpose", {{"perm", "axes"}}};
  ops.push_back(std::move(permute));
  OpDef broadcast =
      injective("broadcast_to", "Repeats dimensions of 1 to a given shape.",
                {moved, {"shape", "a shape"}}, {}, infer_broadcast_to, lower_broadcast_to);
  broadcast.fusion = FusionKind::kBroadcast;
  ops.push_back(std::move(broadcast));
  OpDef concat = injective("concat", "Joins tensors along an axis.",
                           {OpInput{"tensors", "a tuple"}.as_moved()}, attrs_of<ConcatAttrs>(),
                           infer_concat, lower_concat);
  concat.layout = LayoutRule::kConcat;
  ops.push_back(std::move(concat));
  ops.push_back(injective("split", "Cuts a tensor along an axis into a tuple.", x,
                          attrs_of<SplitAttrs>(), infer_split, lower_split));
  ops.push_back(injective("tile", "Repeats the whole tensor along each axis.", x,
                          attrs_of<TileAttrs>(), infer_tile, lower_tile));
  ops.push_back(injective("repeat", "Repeats each element along an axis.", x,
                          attrs_of<RepeatAttrs>(), infer_repeat, lower_repeat));
  ops.push_back(injective("flip", "Reverses the order along an axis.", x, attrs_of<FlipAttrs>(),
                          infer_flip, lower_flip));
  return ops;
}

}  // namespace tenon::graph
