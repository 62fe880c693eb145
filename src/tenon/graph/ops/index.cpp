// SPDX-License-Identifier: Apache-2.0
// Gathers and scatters: elements by run-time indices. Negative indices count from the end; those
// outside are errors with the operator's name: of the compiler where the indices are constants,
// otherwise of a check that stands before the kernel's work.
#include <algorithm>
#include <limits>

#include "tenon/graph/ops/define.h"

namespace tenon::graph {

namespace {

using Shape = std::vector<Expr>;

void check_indices(const Call& call, size_t i) {
  const DType dtype = tensor_arg(call, i)->dtype;
  if (!dtype.is_void() && !dtype.is_integer())
    throw CompileError(kDTypeMismatch, call.origin,
                       "argument `{}` of `{}` has dtype {}; expected an integer dtype",
                       input_name(call, i), call.op->name, dtype.str());
}

// Index operands whose values are checked to lie in [-extent, extent) once, before they are used.
class CheckedIndices {
 public:
  // `extent_of(at)`: the extent of the axis that element `at` of the indices refers to.
  CheckedIndices(KernelOf& kernel, size_t i, const std::function<Expr(const Indices&)>& extent_of)
      : indices_(kernel.arg(i)) {
    const auto axes = tir::KernelBuilder::axes(indices_.shape);
    const Indices at = tir::KernelBuilder::indices(axes);
    const Expr extent = extent_of(at);
    const auto known = as_int(extent);
    if (const auto values = constant_ints(kernel.call().args[i]); values && known) {
      negative_ = false;
      for (const int64_t value : *values) {
        negative_ = negative_ || value < 0;
        if (value < -*known || value >= *known)
          throw CompileError(kOutOfBounds, kernel.call().origin,
                             "{} has index {} into an axis of {}", name_for_messages(kernel.call()),
                             value, *known);
      }
      return;
    }
    const Expr value = tenon::cast(kInt64, indices_(at));
    kernel.append(tir::define(
        "check_indices", axes, {},
        make<tir::Assert>(
            logical_and(value >= int64(0) - extent, value < extent),
            fmt::format("{}: an index is outside its axis", name_for_messages(kernel.call())))));
  }
  const Shape& shape() const { return indices_.shape; }
  /// The index at `at`, counted from the front.
  Expr operator()(const Indices& at, const Expr& extent) const {
    const Expr value = tenon::cast(kInt64, indices_(at));
    return negative_ ? select(value < int64(0), value + extent, value) : value;
  }

 private:
  Operand indices_;
  bool negative_ = true;
};

// The extent of axis `which` of `shape`, an expression of constants.
Expr extent_at(const Shape& shape, const Expr& which) {
  if (const auto known = as_int(which)) return shape[static_cast<size_t>(*known)];
  if (shape.empty()) return int64(0);
  Expr out = shape.back();
  for (size_t d = shape.size() - 1; d-- > 0;)
    out = select(eq(which, int64(static_cast<int64_t>(d))), shape[d], out);
  return out;
}

struct TakeAttrs {
  std::optional<int64_t> axis;
  std::string mode = "fast";
  static auto table() {
    return std::tuple{
        attr<&TakeAttrs::axis>("axis", "indexed; None: of the flattened tensor"),
        attr<&TakeAttrs::mode>(
            "mode",
            "what an index outside gives: \"fast\" an error (and those below 0 count from the "
            "end), \"clip\" the nearest element, \"wrap\" one counted around, \"nan\" NaN")};
  }
};
struct IndexedAxisAttrs {
  int64_t axis = 0;
  static auto table() { return std::tuple{attr<&IndexedAxisAttrs::axis>("axis", "indexed")}; }
};

// What an index operand indexes: the extent of `axis` of the first argument, or all of it where
// there is none.
Expr indexed_extent(const Call& call, std::optional<int64_t> axis) {
  const Ref<TensorType> data = tensor_arg(call, 0);
  if (!data->shape) return {};
  if (!axis) {
    Expr all = int64(1);
    for (const Expr& dim : *data->shape) all = binary(BinaryOp::kMul, all, dim);
    return simplify_dim(all);
  }
  const int64_t at = *axis < 0 ? *axis + data->ndim : *axis;
  return at >= 0 && at < data->ndim ? (*data->shape)[static_cast<size_t>(at)] : Expr();
}

// The least extent among the axes that coordinates (the last axis of argument 1) go into, from axis
// `first` on.
Expr least_extent(const Call& call, size_t first) {
  const Ref<TensorType> data = tensor_arg(call, 0), indices = tensor_arg(call, 1);
  if (!data->shape || !indices->shape || indices->shape->empty()) return {};
  const auto count = as_int(indices->shape->back());
  if (!count) return {};
  Expr least;
  for (size_t d = first; d < first + static_cast<size_t>(*count) && d < data->shape->size(); ++d) {
    const Expr& dim = (*data->shape)[d];
    if (!least || (as_int(dim) && as_int(least) && *as_int(dim) < *as_int(least))) least = dim;
  }
  return least;
}

Expr extent_of_axis(const Call& call) {
  return indexed_extent(call, attrs_as<IndexedAxisAttrs>(call).axis);
}

// ---- take ---------------------------------------------------------------------------------------

OpDef take() {
  OpDef op;
  op.name = "take";
  op.summary = "The slices of x at the indices, along one axis.";
  const auto extent = [](const Call& call) {
    return indexed_extent(call, attrs_as<TakeAttrs>(call).axis);
  };
  op.inputs = {{"x", "any shape"},
               OpInput{"indices", "integers, any shape"}.used_as(InputUse::kIndex, extent)};
  op.attrs = attrs_of<TakeAttrs>();
  op.infer_type = [](const Call& call) -> Type {
    check_indices(call, 1);
    const Ref<TensorType> x = tensor_arg(call, 0), indices = tensor_arg(call, 1);
    const auto attrs = attrs_as<TakeAttrs>(call);
    const std::string& mode = attrs.mode;
    if (mode != "fast" && mode != "clip" && mode != "wrap" && mode != "nan")
      throw CompileError(kBadAttribute, call.origin,
                         "attribute `mode` of `take` is \"{}\"; expected \"fast\", \"clip\", "
                         "\"wrap\" or \"nan\"",
                         mode);
    if (mode == "nan") check_float(call, 0);
    if (!attrs.axis) return tensor_of(indices->shape, x->dtype, indices->ndim);
    if (x->ndim < 0 || indices->ndim < 0) return make<TensorType>(x->dtype, -1);
    const size_t at = axis_of(call, *attrs.axis, x->ndim);
    if (!x->shape || !indices->shape)
      return make<TensorType>(x->dtype, x->ndim - 1 + indices->ndim);
    Shape shape(x->shape->begin(), x->shape->begin() + static_cast<std::ptrdiff_t>(at));
    shape.insert(shape.end(), indices->shape->begin(), indices->shape->end());
    shape.insert(shape.end(), x->shape->begin() + static_cast<std::ptrdiff_t>(at) + 1,
                 x->shape->end());
    return make<TensorType>(std::move(shape), x->dtype);
  };
  op.lower = [](BlockBuilder& builder, const Call& call) {
    const auto attrs = attrs_as<TakeAttrs>(call);
    if (!attrs.axis && tensor_arg(call, 0)->ndim != 1) {
      const Value flat = builder.emit(call_op("flatten", {call.args[0]}, {}, call.origin));
      const auto inner = call_op("take", {flat, call.args[1]},
                                 to_attrs(TakeAttrs{.axis = 0, .mode = attrs.mode}), call.origin);
      return builder.emit(inner);
    }
    KernelOf kernel(builder, call);
    const Operand x = kernel.arg(0);
    const size_t axis = axis_of(call, attrs.axis.value_or(0), static_cast<int64_t>(x.ndim()));
    const Expr extent = x.shape[axis];
    const auto begin = static_cast<std::ptrdiff_t>(axis);
    const auto element = [&](const Indices& i, size_t ndim, const auto& index) {
      const auto count = static_cast<std::ptrdiff_t>(ndim);
      Indices at(i.begin(), i.begin() + begin);
      at.push_back(index(Indices(i.begin() + begin, i.begin() + begin + count)));
      at.insert(at.end(), i.begin() + begin + count, i.end());
      return x(at);
    };
    const std::string& mode = attrs.mode;
    if (mode == "fast") {
      const CheckedIndices indices(kernel, 1, [&](const Indices&) { return extent; });
      return kernel.emit_compute([&](const Indices& i) {
        return element(i, indices.shape().size(),
                       [&](const Indices& at) { return indices(at, extent); });
      });
    }
    const Operand indices = kernel.arg(1);
    return kernel.emit_compute([&](const Indices& i) {
      Expr inside = boolean(true);
      const Expr value = element(i, indices.ndim(), [&](const Indices& at) {
        const Expr index = tenon::cast(kInt64, indices(at));
        inside = logical_and(index >= int64(0), index < extent);
        if (mode == "wrap") return floormod(index, extent);
        return max(int64(0), min(index, extent - 1));
      });
      if (mode != "nan") return value;
      return select(inside, value, imm(x.dtype, std::numeric_limits<double>::quiet_NaN()));
    });
  };
  op.fusion = FusionKind::kInjective;
  op.onnx.name = "Gather";
  op.source = "ONNX Gather-13";
  return op;
}

// ---- gather_elements, gather_nd -----------------------------------------------------------------

// Indices of the rank of `data`, and an axis that it has.
void check_axis_indexed(const Call& call) {
  const int64_t ndim = tensor_arg(call, 0)->ndim;
  if (ndim < 0) return;
  check_rank(call, 1, ndim);
  (void)axis_of(call, attrs_as<IndexedAxisAttrs>(call).axis, ndim);
}

OpDef gather_elements() {
  OpDef op;
  op.name = "gather_elements";
  op.summary = "result[i, j, k] = data[indices[i, j, k], j, k] for axis 0, and alike.";
  op.inputs = {
      {"data", "any shape"},
      OpInput{"indices", "integers, the same rank"}.used_as(InputUse::kIndex, extent_of_axis)};
  op.attrs = attrs_of<IndexedAxisAttrs>();
  op.infer_type = [](const Call& call) -> Type {
    check_indices(call, 1);
    const Ref<TensorType> x = tensor_arg(call, 0), indices = tensor_arg(call, 1);
    check_axis_indexed(call);
    return tensor_of(indices->shape, x->dtype, x->ndim);
  };
  op.lower = [](BlockBuilder& builder, const Call& call) {
    KernelOf kernel(builder, call);
    const Operand x = kernel.arg(0);
    const size_t axis =
        axis_of(call, attrs_as<IndexedAxisAttrs>(call).axis, static_cast<int64_t>(x.ndim()));
    const CheckedIndices indices(kernel, 1, [&](const Indices&) { return x.shape[axis]; });
    return kernel.emit_compute([&](const Indices& i) {
      Indices at = i;
      at[axis] = indices(i, x.shape[axis]);
      return x(at);
    });
  };
  op.fusion = FusionKind::kInjective;
  op.source = "ONNX GatherElements-13";
  return op;
}

// The number of coordinates in the last axis of argument i, which must be a constant.
size_t coordinates(const Call& call, size_t i) {
  const Ref<TensorType> indices = tensor_arg(call, i);
  const auto count = indices->shape && indices->ndim > 0 ? as_int(indices->dim(-1)) : std::nullopt;
  if (!count)
    throw CompileError(kUnsupported, call.origin,
                       "argument `{}` of `{}` is {}; expected a last dimension that is known",
                       input_name(call, i), call.op->name, str(indices));
  return static_cast<size_t>(*count);
}

// Appends the coordinates that the vector of `indices` at the leading indices of `i` names, one for
// each of the extents `indexed`, then the rest of `i`.
void append_coordinates(Indices& at, const CheckedIndices& indices, const Shape& indexed,
                        const Indices& i) {
  const auto lead = static_cast<std::ptrdiff_t>(indices.shape().size()) - 1;
  for (size_t c = 0; c < indexed.size(); ++c) {
    Indices from(i.begin(), i.begin() + lead);
    from.push_back(int64(static_cast<int64_t>(c)));
    at.push_back(indices(from, indexed[c]));
  }
  at.insert(at.end(), i.begin() + lead, i.end());
}

struct GatherNdAttrs {
  int64_t batch_dims = 0;
  static auto table() {
    return std::tuple{
        attr<&GatherNdAttrs::batch_dims>("batch_dims", "leading axes that both share")};
  }
};

OpDef gather_nd() {
  OpDef op;
  op.name = "gather_nd";
  op.summary = "The slices of data at the index vectors in the last axis of indices.";
  const auto extent = [](const Call& call) {
    return least_extent(call, static_cast<size_t>(attrs_as<GatherNdAttrs>(call).batch_dims));
  };
  op.inputs = {
      {"data", "any shape"},
      OpInput{"indices", "(..., number of coordinates)"}.used_as(InputUse::kIndex, extent)};
  op.attrs = attrs_of<GatherNdAttrs>();
  op.infer_type = [](const Call& call) -> Type {
    check_indices(call, 1);
    const Ref<TensorType> x = tensor_arg(call, 0), indices = tensor_arg(call, 1);
    if (!x->shape || !indices->shape) return make<TensorType>(x->dtype, -1);
    const auto batch = static_cast<size_t>(attrs_as<GatherNdAttrs>(call).batch_dims);
    const size_t count = coordinates(call, 1);
    if (batch + count > x->shape->size() || batch >= indices->shape->size())
      throw CompileError(kRankMismatch, call.origin,
                         "`gather_nd` with {} coordinates after {} batch dimensions into {}", count,
                         batch, str(x));
    for (size_t d = 0; d < batch; ++d)
      check_dim(call, 1, (*indices->shape)[d], (*x->shape)[d], fmt::format("dimension {}", d));
    Shape shape(indices->shape->begin(), indices->shape->end() - 1);
    shape.insert(shape.end(), x->shape->begin() + static_cast<std::ptrdiff_t>(batch + count),
                 x->shape->end());
    return make<TensorType>(std::move(shape), x->dtype);
  };
  op.lower = [](BlockBuilder& builder, const Call& call) {
    KernelOf kernel(builder, call);
    const Operand x = kernel.arg(0);
    const auto batch = static_cast<size_t>(attrs_as<GatherNdAttrs>(call).batch_dims);
    const size_t count = coordinates(call, 1);
    const Shape indexed(x.shape.begin() + static_cast<std::ptrdiff_t>(batch),
                        x.shape.begin() + static_cast<std::ptrdiff_t>(batch + count));
    const CheckedIndices indices(kernel, 1,
                                 [&](const Indices& at) { return extent_at(indexed, at.back()); });
    return kernel.emit_compute([&](const Indices& i) {
      Indices at(i.begin(), i.begin() + static_cast<std::ptrdiff_t>(batch));
      append_coordinates(at, indices, indexed, i);
      return x(at);
    });
  };
  op.fusion = FusionKind::kInjective;
  op.source = "ONNX GatherND-13";
  return op;
}

// ---- scatter_elements, scatter_nd ---------------------------------------------------------------

struct ScatterAttrs {
  std::string reduction = "update";
  static auto table() {
    return std::tuple{
        attr<&ScatterAttrs::reduction>("reduction",
                                       "\"update\", \"add\", \"mul\", \"min\" or \"max\" of what "
                                       "was there")};
  }
};
struct ScatterElementsAttrs : IndexedAxisAttrs, ScatterAttrs {
  static auto table() { return std::tuple_cat(IndexedAxisAttrs::table(), ScatterAttrs::table()); }
};

Expr combine(const std::string& reduction, const Expr& before, const Expr& update) {
  if (reduction == "add") return before + update;
  if (reduction == "mul") return before * update;
  if (reduction == "min") return tir::min_reducer().combine(before, update);
  if (reduction == "max") return tir::max_reducer().combine(before, update);
  return update;
}

Type infer_scatter(const Call& call) {
  check_indices(call, 1);
  const Ref<TensorType> x = tensor_arg(call, 0);
  check_dtype(call, 2, x->dtype);
  const std::string reduction = attrs_as<ScatterAttrs>(call).reduction;
  if (reduction != "update" && reduction != "add" && reduction != "mul" && reduction != "min" &&
      reduction != "max")
    throw CompileError(kBadAttribute, call.origin,
                       "attribute `reduction` of `{}` is \"{}\"; expected \"update\", \"add\", "
                       "\"mul\", \"min\" or \"max\"",
                       call.op->name, reduction);
  return x;
}

// A copy of x, then one store for each element of `updates`, in order: indices may repeat.
Value emit_scatter(KernelOf& kernel, const Operand& x, const Operand& updates,
                   const std::string& reduction,
                   const std::function<Indices(const Indices&)>& target) {
  const Operand out =
      kernel.compute(kernel.out_name(), x.shape, [&](const Indices& i) { return x(i); });
  const auto axes = tir::KernelBuilder::axes(updates.shape, tir::IterKind::kOpaque, "u");
  const Indices at = tir::KernelBuilder::indices(axes);
  const Indices place = target(at);
  const tir::Stmt store =
      make<tir::BufferStore>(out.buffer, combine(reduction, out(place), updates(at)), place);
  // What is not stored to stays, so the block reads its result in every case.
  tir::Stmt nest = tir::define("scatter", axes, {}, store);
  nest = rewrite(nest, [&](const NodePtr& node) -> std::optional<NodePtr> {
    const auto* block = node.as<tir::Block>();
    if (!block) return std::nullopt;
    tir::Block::Parts parts = block->parts();
    parts.reads.push_back(tir::BufferRegion::whole(out.buffer));
    return make<tir::Block>(std::move(parts));
  });
  kernel.append(nest);
  return kernel.emit({out});
}

OpDef scatter_elements() {
  OpDef op;
  op.name = "scatter_elements";
  op.summary =
      "A copy of data where result[indices[i, j, k], j, k] takes updates[i, j, k] for "
      "axis 0, and alike.";
  op.inputs = {
      {"data", "any shape"},
      OpInput{"indices", "integers, the same rank"}.used_as(InputUse::kIndex, extent_of_axis),
      {"updates", "the shape of indices"}};
  op.attrs = attrs_of<ScatterElementsAttrs>();
  op.infer_type = [](const Call& call) -> Type {
    const Type type = infer_scatter(call);
    const Ref<TensorType> x = tensor_arg(call, 0), indices = tensor_arg(call, 1),
                          updates = tensor_arg(call, 2);
    check_axis_indexed(call);
    if (indices->shape && updates->shape &&
        shapes_agree(*indices->shape, *updates->shape) == DimsAgree::kNo)
      throw CompileError(kShapeMismatch, call.origin,
                         "`scatter_elements` has indices {} and updates {}", str(indices),
                         str(updates));
    return type;
  };
  op.lower = [](BlockBuilder& builder, const Call& call) {
    KernelOf kernel(builder, call);
    const Operand x = kernel.arg(0);
    const size_t axis =
        axis_of(call, attrs_as<IndexedAxisAttrs>(call).axis, static_cast<int64_t>(x.ndim()));
    const CheckedIndices indices(kernel, 1, [&](const Indices&) { return x.shape[axis]; });
    const Operand updates = kernel.arg(2);
    return emit_scatter(kernel, x, updates, attrs_as<ScatterAttrs>(call).reduction,
                        [&](const Indices& u) {
                          Indices at = u;
                          at[axis] = indices(u, x.shape[axis]);
                          return at;
                        });
  };
  op.fusion = FusionKind::kOpaque;
  op.source = "ONNX ScatterElements-18";
  return op;
}

OpDef scatter_nd() {
  OpDef op;
  op.name = "scatter_nd";
  op.summary = "A copy of data where the slices at the index vectors take the updates.";
  const auto extent = [](const Call& call) { return least_extent(call, 0); };
  op.inputs = {{"data", "any shape"},
               OpInput{"indices", "(..., number of coordinates)"}.used_as(InputUse::kIndex, extent),
               {"updates", "leading axes of indices, then those of data that are not indexed"}};
  op.attrs = attrs_of<ScatterAttrs>();
  op.infer_type = [](const Call& call) -> Type {
    const Type type = infer_scatter(call);
    const Ref<TensorType> x = tensor_arg(call, 0), indices = tensor_arg(call, 1),
                          updates = tensor_arg(call, 2);
    if (!x->shape || !indices->shape || !updates->shape) return type;
    const size_t count = coordinates(call, 1);
    if (count > x->shape->size())
      throw CompileError(kRankMismatch, call.origin, "`scatter_nd` with {} coordinates into {}",
                         count, str(x));
    Shape expected(indices->shape->begin(), indices->shape->end() - 1);
    expected.insert(expected.end(), x->shape->begin() + static_cast<std::ptrdiff_t>(count),
                    x->shape->end());
    if (shapes_agree(expected, *updates->shape) == DimsAgree::kNo)
      throw CompileError(kShapeMismatch, call.origin,
                         "`scatter_nd` has updates of shape {}; expected {}",
                         tenon::str(*updates->shape), tenon::str(expected));
    return type;
  };
  op.lower = [](BlockBuilder& builder, const Call& call) {
    KernelOf kernel(builder, call);
    const Operand x = kernel.arg(0);
    const size_t count = coordinates(call, 1);
    const Shape indexed(x.shape.begin(), x.shape.begin() + static_cast<std::ptrdiff_t>(count));
    const CheckedIndices indices(kernel, 1,
                                 [&](const Indices& at) { return extent_at(indexed, at.back()); });
    const Operand updates = kernel.arg(2);
    return emit_scatter(kernel, x, updates, attrs_as<ScatterAttrs>(call).reduction,
                        [&](const Indices& u) {
                          Indices at;
                          append_coordinates(at, indices, indexed, u);
                          return at;
                        });
  };
  op.fusion = FusionKind::kOpaque;
  op.source = "ONNX ScatterND-18";
  return op;
}

// ---- tensor_scatter -----------------------------------------------------------------------------

struct TensorScatterAttrs {
  int64_t axis = -2;
  std::string mode = "linear";
  static auto table() {
    return std::tuple{
        attr<&TensorScatterAttrs::axis>("axis", "that is written along; not 0, the batch"),
        attr<&TensorScatterAttrs::mode>(
            "mode", "\"linear\": inside of the axis; \"circular\": around from its end")};
  }
};

Type infer_tensor_scatter(const Call& call) {
  const Ref<TensorType> x = tensor_arg(call, 0), updates = tensor_arg(call, 1);
  check_dtype(call, 1, x->dtype);
  const auto attrs = attrs_as<TensorScatterAttrs>(call);
  if (attrs.mode != "linear" && attrs.mode != "circular")
    throw CompileError(kBadAttribute, call.origin,
                       "attribute `mode` of `{}` is \"{}\"; expected \"linear\" or \"circular\"",
                       call.op->name, attrs.mode);
  if (x->ndim >= 0) {
    check_rank(call, 1, x->ndim);
    const size_t axis = axis_of(call, attrs.axis, x->ndim);
    if (axis == 0)
      throw CompileError(kBadAttribute, call.origin, "`{}` has axis 0, the batch", call.op->name);
    for (size_t d = 0; x->shape && updates->shape && d < x->shape->size(); ++d)
      if (d != axis)
        check_dim(call, 1, (*updates->shape)[d], (*x->shape)[d], fmt::format("dimension {}", d));
    if (x->shape && updates->shape) {
      const auto has = as_int((*x->shape)[axis]), takes = as_int((*updates->shape)[axis]);
      if (has && takes && *takes > *has)
        throw CompileError(kShapeMismatch, call.origin,
                           "`{}` writes {} elements along an axis of {}", call.op->name, *takes,
                           *has);
    }
  }
  if (arg_or_null(call, 2)) {
    check_indices(call, 2);
    check_rank(call, 2, 1);
    const Ref<TensorType> starts = tensor_arg(call, 2);
    if (starts->shape && x->shape) check_dim(call, 2, starts->dim(0), x->dim(0), "dimension 0");
  }
  return x;
}

Value lower_tensor_scatter(BlockBuilder& builder, const Call& call) {
  KernelOf kernel(builder, call);
  const Operand x = kernel.arg(0), updates = kernel.arg(1);
  const Operand starts = arg_or_null(call, 2) ? kernel.arg(2) : Operand();
  const auto attrs = attrs_as<TensorScatterAttrs>(call);
  const bool circular = attrs.mode == "circular";
  const size_t axis = axis_of(call, attrs.axis, static_cast<int64_t>(x.ndim()));
  const Expr extent = x.shape[axis], count = updates.shape[axis];
  const auto start = [&](const Expr& batch) {
    return starts ? tenon::cast(kInt64, starts({batch})) : int64(0);
  };
  const auto axes = tir::KernelBuilder::axes({x.shape[0]});
  const Expr first = start(axes[0].var);
  const Expr fits =
      circular ? count <= extent : logical_and(first >= int64(0), first + count <= extent);
  kernel.append(
      tir::define("check_indices", axes, {},
                  make<tir::Assert>(fits, fmt::format("{}: what is written does not fit the axis",
                                                      name_for_messages(call)))));
  return emit_scatter(kernel, x, updates, "update", [&](const Indices& u) {
    Indices at = u;
    at[axis] = u[axis] + start(u[0]);
    if (circular) at[axis] = floormod(at[axis], extent);
    return at;
  });
}

OpDef tensor_scatter() {
  OpDef op;
  op.name = "tensor_scatter";
  op.summary =
      "A copy of data where updates[b] is written along the axis from write_indices[b] on.";
  const auto room = [](const Call& call) -> Expr {
    const Ref<TensorType> x = tensor_arg(call, 0), updates = tensor_arg(call, 1);
    if (!x->shape || !updates->shape) return {};
    const size_t axis = axis_of(call, attrs_as<TensorScatterAttrs>(call).axis, x->ndim);
    return simplify_dim((*x->shape)[axis] - (*updates->shape)[axis]);
  };
  op.inputs = {{"data", "(batch, ...)"},
               {"updates", "the same, but for the axis"},
               OpInput{"write_indices", "(batch,), integers; 0 where there are none", true}.used_as(
                   InputUse::kCount, room)};
  op.attrs = attrs_of<TensorScatterAttrs>();
  op.infer_type = infer_tensor_scatter;
  op.lower = lower_tensor_scatter;
  op.fusion = FusionKind::kOpaque;
  op.source = "ONNX TensorScatter-24";
  return op;
}

// ---- reverse_sequence ---------------------------------------------------------------------------

struct ReverseSequenceAttrs {
  int64_t seq_axis = 1, batch_axis = 0;
  static auto table() {
    return std::tuple{attr<&ReverseSequenceAttrs::seq_axis>("seq_axis", "reversed"),
                      attr<&ReverseSequenceAttrs::batch_axis>("batch_axis", "of seq_lengths")};
  }
};

OpDef reverse_sequence() {
  OpDef op;
  op.name = "reverse_sequence";
  op.summary =
      "Reverses the first seq_lengths[b] elements along seq_axis for each b of batch_axis.";
  const auto extent = [](const Call& call) {
    const Ref<TensorType> x = tensor_arg(call, 0);
    const auto axis = static_cast<size_t>(attrs_as<ReverseSequenceAttrs>(call).seq_axis);
    return x->shape && axis < x->shape->size() ? (*x->shape)[axis] : Expr();
  };
  op.inputs = {{"x", "rank 2 or more"},
               OpInput{"seq_lengths", "(batch,), integers"}.used_as(InputUse::kCount, extent)};
  op.attrs = attrs_of<ReverseSequenceAttrs>();
  op.infer_type = [](const Call& call) -> Type {
    check_indices(call, 1);
    check_rank(call, 1, 1);
    const Ref<TensorType> x = tensor_arg(call, 0);
    if (x->ndim >= 0) {
      const size_t seq = axis_of(call, attrs_as<ReverseSequenceAttrs>(call).seq_axis, x->ndim);
      const size_t batch = axis_of(call, attrs_as<ReverseSequenceAttrs>(call).batch_axis, x->ndim);
      if (seq == batch)
        throw CompileError(kBadAttribute, call.origin,
                           "seq_axis and batch_axis of `reverse_sequence` are both {}", seq);
    }
    return x;
  };
  op.lower = [](BlockBuilder& builder, const Call& call) {
    KernelOf kernel(builder, call);
    const Operand x = kernel.arg(0), lengths = kernel.arg(1);
    const auto ndim = static_cast<int64_t>(x.ndim());
    const size_t seq = axis_of(call, attrs_as<ReverseSequenceAttrs>(call).seq_axis, ndim);
    const size_t batch = axis_of(call, attrs_as<ReverseSequenceAttrs>(call).batch_axis, ndim);
    const auto axes = tir::KernelBuilder::axes(lengths.shape);
    const Expr length = tenon::cast(kInt64, lengths(tir::KernelBuilder::indices(axes)));
    kernel.append(
        tir::define("check_lengths", axes, {},
                    make<tir::Assert>(
                        logical_and(length >= int64(0), length <= x.shape[seq]),
                        fmt::format("{}: a length is outside its axis", name_for_messages(call)))));
    return kernel.emit_compute([&](const Indices& i) {
      const Expr count = tenon::cast(kInt64, lengths({i[batch]}));
      Indices at = i;
      at[seq] = select(i[seq] < count, count - 1 - i[seq], i[seq]);
      return x(at);
    });
  };
  op.fusion = FusionKind::kInjective;
  op.source = "ONNX ReverseSequence-10";
  return op;
}

}  // namespace

std::vector<OpDef> index_ops() {
  return {take(),       gather_elements(), gather_nd(),       scatter_elements(),
          scatter_nd(), tensor_scatter(),  reverse_sequence()};
}

}  // namespace tenon::graph
