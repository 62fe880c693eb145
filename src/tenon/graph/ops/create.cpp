// SPDX-License-Identifier: Apache-2.0
// Operators that make tensors from shapes and scalars.
#include <cmath>

#include "tenon/graph/ops/define.h"

namespace tenon::graph {

namespace {

using Shape = std::vector<Expr>;

struct CreateAttrs {
  DType dtype = kVoid;
  static auto table() { return std::tuple{attr<&CreateAttrs::dtype>("dtype", "of the result")}; }
};

// The shape argument i, or a type of unknown shape.
Type filled_type(const Call& call, size_t i, DType dtype) {
  const auto dims = dims_arg(call, i);
  if (dims) return tensor_of(*dims, dtype, 0);
  const Type type = type_of(call.args[i]);
  const auto* shape = type.as<ShapeType>();
  return make<TensorType>(dtype, shape ? shape->ndim : -1);
}

DType given_dtype(const Call& call, DType otherwise) {
  const DType dtype = attrs_as<CreateAttrs>(call).dtype;
  return dtype.is_void() ? otherwise : dtype;
}

// The one element of argument i: a scalar, or a tensor of rank 0.
Expr fill_value(KernelOf& kernel, size_t i) {
  const Value& value = kernel.call().args.at(i);
  if (value.as<PrimValue>()) return scalar_arg(kernel.call(), i);
  const Operand fill = kernel.arg(i);
  return fill(Indices(fill.ndim(), int64(0)));
}

DType fill_dtype(const Call& call, size_t i) {
  const Type type = type_of(call.args.at(i));
  if (const auto* prim = type.as<PrimType>()) return prim->dtype;
  const Ref<TensorType> tensor = tensor_arg(call, i);
  if (tensor->shape && !is_int(simplify_dim(tir::element_count(*tensor->shape)), 1))
    throw CompileError(kShapeMismatch, call.origin,
                       "argument `{}` of `{}` is {}; expected one element", input_name(call, i),
                       call.op->name, str(tensor));
  return tensor->dtype;
}

OpDef full(bool like) {
  OpDef op;
  op.name = like ? "full_like" : "full";
  op.summary = "Every element is one value.";
  op.inputs = {like ? OpInput{"x", "whose shape the result has"} : OpInput{"shape", "a shape"},
               {"fill_value", "one element"}};
  op.attrs = attrs_of<CreateAttrs>();
  op.infer_type = [like](const Call& call) -> Type {
    const DType fill = fill_dtype(call, 1);
    if (like) return same_shape(call, 0, given_dtype(call, tensor_arg(call, 0)->dtype));
    return filled_type(call, 0, given_dtype(call, fill));
  };
  op.lower = [](BlockBuilder& builder, const Call& call) {
    KernelOf kernel(builder, call);
    const Expr value = fill_value(kernel, 1);
    return kernel.emit_compute([&](const Indices&) { return tenon::cast(kernel.dtype(), value); });
  };
  op.fusion = FusionKind::kInjective;
  return op;
}

OpDef constant_fill(std::string name, int64_t value, bool like) {
  OpDef op;
  op.name = std::move(name);
  op.summary = fmt::format("Every element is {}.", value);
  op.inputs = {like ? OpInput{"x", "whose shape the result has"} : OpInput{"shape", "a shape"}};
  op.attrs = attrs_of<CreateAttrs>();
  op.infer_type = [like](const Call& call) -> Type {
    if (like) return same_shape(call, 0, given_dtype(call, tensor_arg(call, 0)->dtype));
    return filled_type(call, 0, given_dtype(call, kFloat32));
  };
  op.lower = [value](BlockBuilder& builder, const Call& call) {
    KernelOf kernel(builder, call);
    return kernel.emit_compute([&](const Indices&) { return imm(kernel.dtype(), value); });
  };
  op.fusion = FusionKind::kInjective;
  return op;
}

// ---- arange -------------------------------------------------------------------------------------

// arange(stop), arange(start, stop) and arange(start, stop, step).
struct Progression {
  Expr start, stop, step;

  explicit Progression(const Call& call) {
    const bool from_zero = !arg_or_null(call, 1);
    stop = scalar_arg(call, from_zero ? 0 : 1);
    start = from_zero ? imm(stop->dtype, int64_t{0}) : scalar_arg(call, 0);
    step = arg_or_null(call, 2) ? scalar_arg(call, 2) : imm(start->dtype, int64_t{1});
  }
  // As Relax: int64 of integers, float32 where one is a float.
  DType dtype() const {
    const bool floats = start->dtype.is_float() || stop->dtype.is_float() || step->dtype.is_float();
    return floats ? kFloat32 : kInt64;
  }
};

// The number of elements of arange.
Expr arange_length(const Call& call) {
  const Progression range(call);
  const Expr &start = range.start, &stop = range.stop, &step = range.step;
  const auto number = [](const Expr& e) -> std::optional<double> {
    if (const auto value = as_float(e)) return value;
    const auto value = as_int(e);
    return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
  };
  const bool floats = start->dtype.is_float() || stop->dtype.is_float() || step->dtype.is_float();
  if (const auto s = number(step); s && *s == 0)
    throw CompileError(kBadArgument, call.origin, "`arange` with step 0");
  if (floats) {
    const auto a = number(start), b = number(stop), s = number(step);
    if (!a || !b || !s)
      throw CompileError(kUnsupported, call.origin, "`arange` of symbolic floats");
    const double count = std::ceil((*b - *a) / *s);
    if (!(count < 4.6e18))
      throw CompileError(kOverflow, call.origin, "`arange` of {} elements", count);
    return int64(count > 0 ? static_cast<int64_t>(count) : 0);
  }
  const auto s = as_int(step);
  if (!s) throw CompileError(kUnsupported, call.origin, "`arange` with a symbolic step");
  const Expr a = tenon::cast(kInt64, start), b = tenon::cast(kInt64, stop);
  const Expr span = *s > 0 ? b - a : a - b;
  const Expr count = simplify_dim(ceildiv(span, int64(*s > 0 ? *s : -*s)));
  return simplify_dim(max(int64(0), count));
}

OpDef arange() {
  OpDef op;
  op.name = "arange";
  op.summary = "start, start + step, ... below stop.";
  op.inputs = {OpInput{"start", "a scalar; alone: stop"}.as_literal(),
               OpInput{"stop", "a scalar", true}.as_literal(),
               OpInput{"step", "a scalar; 1 where there is none", true}.as_literal()};
  op.attrs = attrs_of<CreateAttrs>();
  op.infer_type = [](const Call& call) -> Type {
    return tensor_of(Shape{arange_length(call)}, given_dtype(call, Progression(call).dtype()), 1);
  };
  op.lower = [](BlockBuilder& builder, const Call& call) {
    KernelOf kernel(builder, call);
    const DType dtype = kernel.dtype();
    const Progression range(call);
    return kernel.emit_compute([&](const Indices& i) {
      return tenon::cast(dtype, range.start) +
             tenon::cast(dtype, i[0]) * tenon::cast(dtype, range.step);
    });
  };
  op.fusion = FusionKind::kInjective;
  op.source = "ONNX Range-11";
  return op;
}

// ---- eye, tril, triu, one_hot -------------------------------------------------------------------

OpDef eye() {
  OpDef op;
  op.name = "eye";
  op.summary = "Ones on a diagonal, zeros elsewhere.";
  op.inputs = {OpInput{"n", "rows, a scalar"}.as_literal(),
               OpInput{"m", "columns, a scalar; n where there is none", true}.as_literal(),
               OpInput{"k", "which diagonal, a scalar; above 0: to the right", true}.as_literal()};
  op.attrs = attrs_of<CreateAttrs>();
  op.infer_type = [](const Call& call) -> Type {
    const size_t columns = arg_or_null(call, 1) ? 1 : 0;
    return tensor_of(Shape{tenon::cast(kInt64, scalar_arg(call, 0)),
                           tenon::cast(kInt64, scalar_arg(call, columns))},
                     given_dtype(call, kFloat32), 2);
  };
  op.lower = [](BlockBuilder& builder, const Call& call) {
    KernelOf kernel(builder, call);
    const DType dtype = kernel.dtype();
    const Expr k = arg_or_null(call, 2) ? tenon::cast(kInt64, scalar_arg(call, 2)) : int64(0);
    return kernel.emit_compute([&](const Indices& i) {
      return select(eq(i[1], i[0] + k), imm(dtype, int64_t{1}), imm(dtype, int64_t{0}));
    });
  };
  op.fusion = FusionKind::kInjective;
  return op;
}

struct TriangleAttrs {
  int64_t k = 0;
  static auto table() {
    return std::tuple{attr<&TriangleAttrs::k>("k", "which diagonal; above 0: to the right")};
  }
};

OpDef triangle(bool lower) {
  OpDef op;
  op.name = lower ? "tril" : "triu";
  op.summary = lower ? "Zeros above a diagonal of the last two axes."
                     : "Zeros below a diagonal of the last two axes.";
  op.inputs = {{"x", "rank 2 or more"}};
  op.attrs = attrs_of<TriangleAttrs>();
  op.infer_type = [](const Call& call) -> Type {
    const Ref<TensorType> x = tensor_arg(call, 0);
    if (x->ndim == 0 || x->ndim == 1) check_rank(call, 0, 2);
    return x;
  };
  op.lower = [lower](BlockBuilder& builder, const Call& call) {
    KernelOf kernel(builder, call);
    const Operand x = kernel.arg(0);
    const int64_t k = attrs_as<TriangleAttrs>(call).k;
    return kernel.emit_compute([&](const Indices& i) {
      const Expr diagonal = i[i.size() - 2] + k;
      const Expr keeps = lower ? i.back() <= diagonal : i.back() >= diagonal;
      return select(keeps, x(i), tenon::cast(x.dtype, imm(kInt64, int64_t{0})));
    });
  };
  op.fusion = FusionKind::kInjective;
  op.source = "ONNX Trilu-14";
  return op;
}

struct OneHotAttrs {
  int64_t depth = 0, axis = -1;
  static auto table() {
    return std::tuple{required<&OneHotAttrs::depth>("depth", "extent of the new axis"),
                      attr<&OneHotAttrs::axis>("axis", "where the new axis stands in the result")};
  }
};

OpDef one_hot() {
  OpDef op;
  op.name = "one_hot";
  op.summary =
      "on_value at each index along a new axis, off_value elsewhere; negative indices "
      "count from the end, others outside give off_value everywhere.";
  const auto extent = [](const Call& call) { return int64(attrs_as<OneHotAttrs>(call).depth); };
  op.inputs = {OpInput{"indices", "integers, any shape"}.used_as(InputUse::kIndex, extent),
               {"on_value", "a scalar"},
               {"off_value", "a scalar"}};
  op.attrs = attrs_of<OneHotAttrs>();
  op.infer_type = [](const Call& call) -> Type {
    const Ref<TensorType> x = tensor_arg(call, 0);
    const DType dtype = fill_dtype(call, 1);
    if (fill_dtype(call, 2) != dtype)
      throw CompileError(kDTypeMismatch, call.origin, "values of `one_hot` have dtypes {} and {}",
                         dtype.str(), fill_dtype(call, 2).str());
    const auto attrs = attrs_as<OneHotAttrs>(call);
    const int64_t depth = attrs.depth;
    if (depth < 0) throw CompileError(kBadAttribute, call.origin, "`one_hot` has depth {}", depth);
    if (x->ndim < 0) return make<TensorType>(dtype, -1);
    const size_t axis = axis_of(call, attrs.axis, x->ndim + 1);
    if (!x->shape) return make<TensorType>(dtype, x->ndim + 1);
    Shape shape = *x->shape;
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), int64(depth));
    return make<TensorType>(std::move(shape), dtype);
  };
  op.lower = [](BlockBuilder& builder, const Call& call) {
    KernelOf kernel(builder, call);
    const Operand indices = kernel.arg(0);
    const Expr on = fill_value(kernel, 1), off = fill_value(kernel, 2);
    const auto attrs = attrs_as<OneHotAttrs>(call);
    const int64_t depth = attrs.depth;
    const size_t axis = axis_of(call, attrs.axis, static_cast<int64_t>(indices.ndim()) + 1);
    return kernel.emit_compute([&](const Indices& i) {
      Indices at = i;
      at.erase(at.begin() + static_cast<std::ptrdiff_t>(axis));
      const Expr index = tenon::cast(kInt64, indices(at));
      const Expr hit = logical_or(eq(index, i[axis]), eq(index + depth, i[axis]));
      return select(hit, on, off);
    });
  };
  op.fusion = FusionKind::kInjective;
  op.source = "ONNX OneHot-11";
  return op;
}

}  // namespace

std::vector<OpDef> create_ops() {
  return {full(false),
          full(true),
          constant_fill("zeros", 0, false),
          constant_fill("zeros_like", 0, true),
          constant_fill("ones", 1, false),
          constant_fill("ones_like", 1, true),
          arange(),
          eye(),
          triangle(true),
          triangle(false),
          one_hot()};
}

}  // namespace tenon::graph
