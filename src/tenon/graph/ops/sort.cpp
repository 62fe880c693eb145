// SPDX-License-Identifier: Apache-2.0
// Sorting along an axis. Short axes count, for each element, those that come before it: its place.
// Longer ones are merged. Equal elements keep their order; NaN is greater than every number.
#include "tenon/graph/ops/merge_sort.h"

namespace tenon::graph {

namespace {

using Shape = std::vector<Expr>;

// What of the elements in order is computed.
struct Wanted {
  bool values, positions;
  DType position_dtype;
};

// Up to this extent every pair is compared, in vectors; longer axes are sorted by merging.
constexpr int64_t kMostCompared = 64;

std::vector<Operand> merge_along(KernelOf& kernel, const Operand& x, size_t axis, bool descending,
                                 const Shape& shape, const Wanted& wanted) {
  MergeSort sort(kernel, x.shape, axis,
                 [&](Statements&, const Indices& mine, const Indices& theirs) {
                   const Expr a = x(mine), b = x(theirs);
                   return descending ? is_less(a, b) : is_less(b, a);
                 });
  const auto position = sort.emit();
  std::vector<Operand> out;
  if (wanted.values)
    out.push_back(kernel.compute("values", shape, [&](const Indices& i) {
      Indices at = i;
      at[axis] = position(i);
      return x(at);
    }));
  if (wanted.positions)
    out.push_back(kernel.compute("positions", shape, [&](const Indices& i) {
      return tenon::cast(wanted.position_dtype, position(i));
    }));
  return out;
}

// The first `shape[axis]` elements of x in order along `axis`, then their positions in x, as they
// are wanted.
std::vector<Operand> sort_along(KernelOf& kernel, const Operand& x, size_t axis, bool descending,
                                const Shape& shape, const Wanted& wanted) {
  if (as_int(x.shape[axis]).value_or(kMostCompared + 1) > kMostCompared)
    return merge_along(kernel, x, axis, descending, shape, wanted);
  const auto before = [&](const Expr& a, const Expr& b) {
    return descending ? is_less(b, a) : is_less(a, b);
  };
  const Operand place = kernel.reduce(
      "place", x.shape, {x.shape[axis]}, tir::sum_reducer(),
      [&](const Indices& i, const Indices& k) {
        Indices other = i;
        other[axis] = k[0];
        const Expr mine = x(i), theirs = x(other);
        const Expr ties = logical_and(tenon::logical_not(before(mine, theirs)), k[0] < i[axis]);
        return tenon::cast(kInt64, logical_or(before(theirs, mine), ties));
      });
  std::vector<Operand> out;
  const auto scatter = [&](const char* name, DType dtype,
                           const std::function<Expr(const Indices&)>& element) {
    const Operand to = kernel.allocate(name, shape, dtype);
    const auto axes = tir::KernelBuilder::axes(x.shape, tir::IterKind::kOpaque);
    const Indices at = tir::KernelBuilder::indices(axes);
    Indices target = at;
    target[axis] = place(at);
    const tir::Stmt store = make<tir::BufferStore>(to.buffer, element(at), target);
    const bool all = dims_agree(x.shape[axis], shape[axis]) == DimsAgree::kYes;
    kernel.append(tir::define("scatter_" + to.buffer->name, axes, {},
                              all ? store : make<tir::IfThenElse>(place(at) < shape[axis], store)));
    out.push_back(to);
  };
  if (wanted.values) scatter("values", x.dtype, [&](const Indices& i) { return x(i); });
  if (wanted.positions)
    scatter("positions", wanted.position_dtype,
            [&](const Indices& i) { return tenon::cast(wanted.position_dtype, i[axis]); });
  return out;
}

struct SortAttrs {
  int64_t axis = -1;
  bool descending = false;
  static auto table() {
    return std::tuple{attr<&SortAttrs::axis>("axis", "sorted"),
                      attr<&SortAttrs::descending>("descending", "greatest first")};
  }
};
struct ArgSortAttrs : SortAttrs {
  DType dtype = kInt32;
  static auto table() {
    return std::tuple_cat(SortAttrs::table(),
                          std::tuple{attr<&ArgSortAttrs::dtype>("dtype", "of positions")});
  }
};
struct TopKAttrs {
  int64_t k = 1, axis = -1;
  std::string ret_type = "both";
  bool largest = true;
  DType dtype = kInt32;
  static auto table() {
    return std::tuple{
        attr<&TopKAttrs::k>("k", "number of elements; below 1: all"),
        attr<&TopKAttrs::axis>("axis", "sorted"),
        attr<&TopKAttrs::ret_type>("ret_type", "\"both\" (a tuple), \"values\", \"indices\""),
        attr<&TopKAttrs::largest>("largest", "greatest, not least"),
        attr<&TopKAttrs::dtype>("dtype", "of positions")};
  }
};

void check_sortable(const Call& call, int64_t axis) {
  const Ref<TensorType> x = tensor_arg(call, 0);
  if (!x->dtype.is_void() && !x->dtype.is_float() && !x->dtype.is_integer())
    throw CompileError(kDTypeMismatch, call.origin,
                       "argument `data` of `{}` has dtype {}; expected a number", call.op->name,
                       x->dtype.str());
  if (x->ndim >= 0) (void)axis_of(call, axis, x->ndim);
}

OpDef sort(bool positions) {
  OpDef op;
  op.name = positions ? "argsort" : "sort";
  op.summary = positions ? "Positions of the elements in order." : "The elements in order.";
  op.inputs = {{"data", "rank 1 or more"}};
  op.attrs = positions ? attrs_of<ArgSortAttrs>() : attrs_of<SortAttrs>();
  op.infer_type = [positions](const Call& call) -> Type {
    check_sortable(call, attrs_as<SortAttrs>(call).axis);
    return positions ? same_shape(call, 0, attrs_as<ArgSortAttrs>(call).dtype)
                     : tensor_arg(call, 0);
  };
  op.lower = [positions](BlockBuilder& builder, const Call& call) {
    KernelOf kernel(builder, call);
    const Operand x = kernel.arg(0);
    const auto attrs = attrs_as<SortAttrs>(call);
    const size_t axis = axis_of(call, attrs.axis, static_cast<int64_t>(x.ndim()));
    return kernel.emit(sort_along(kernel, x, axis, attrs.descending, x.shape,
                                  {!positions, positions, kernel.dtype()}));
  };
  op.source = "NumPy, sort with kind=\"stable\"";
  return op;
}

OpDef topk() {
  OpDef op;
  op.name = "topk";
  op.summary = "The k greatest (or least) elements in order, and their positions.";
  op.inputs = {{"data", "rank 1 or more"}};
  op.attrs = attrs_of<TopKAttrs>();
  op.infer_type = [](const Call& call) -> Type {
    const auto attrs = attrs_as<TopKAttrs>(call);
    check_sortable(call, attrs.axis);
    const Ref<TensorType> x = tensor_arg(call, 0);
    const std::string& wanted = attrs.ret_type;
    if (wanted != "both" && wanted != "values" && wanted != "indices")
      throw CompileError(kBadAttribute, call.origin,
                         "attribute `ret_type` of `topk` is \"{}\"; expected \"both\", \"values\" "
                         "or \"indices\"",
                         wanted);
    const auto type = [&](DType dtype) -> Type {
      if (!x->shape) return make<TensorType>(dtype, x->ndim);
      Shape shape = *x->shape;
      const size_t axis = axis_of(call, attrs.axis, x->ndim);
      const int64_t k = attrs.k;
      const auto known = as_int(shape[axis]);
      if (k >= 1 && known && k > *known)
        throw CompileError(kBadAttribute, call.origin, "`topk` of {} elements of an axis of {}", k,
                           *known);
      if (k >= 1) shape[axis] = int64(k);
      return make<TensorType>(std::move(shape), dtype);
    };
    if (wanted == "values") return type(x->dtype);
    if (wanted == "indices") return type(attrs.dtype);
    return make<TupleType>(std::vector<Type>{type(x->dtype), type(attrs.dtype)});
  };
  op.lower = [](BlockBuilder& builder, const Call& call) {
    KernelOf kernel(builder, call);
    const Operand x = kernel.arg(0);
    const auto attrs = attrs_as<TopKAttrs>(call);
    const size_t axis = axis_of(call, attrs.axis, static_cast<int64_t>(x.ndim()));
    const std::string& wanted = attrs.ret_type;
    if (!as_int(x.shape[axis]) && attrs.k >= 1) {
      // Whether the axis has that many elements, only the run knows.
      kernel.append(
          make<tir::Assert>(x.shape[axis] >= int64(attrs.k),
                            fmt::format("`topk`: the axis has fewer than {} elements", attrs.k)));
    }
    return kernel.emit(sort_along(kernel, x, axis, attrs.largest, kernel.shape(),
                                  {wanted != "indices", wanted != "values", attrs.dtype}));
  };
  op.source = "ONNX TopK-11";
  return op;
}

}  // namespace

std::vector<OpDef> sort_ops() {
  return {sort(false), sort(true), topk(), nonzero(), unique_positions()};
}

}  // namespace tenon::graph
