// SPDX-License-Identifier: Apache-2.0
// Sorting along an axis. Short axes count, for each element, those that come before it: its place.
// Longer ones are merged. Equal elements keep their order; NaN is greater than every number.
#include "tenon/graph/ops/define.h"

namespace tenon::graph {

namespace {

using Shape = std::vector<Expr>;

Expr is_less(const Expr& a, const Expr& b) {
  if (!a->dtype.is_float()) return a < b;
  return logical_or(a < b, logical_and(ne(b, b), eq(a, a)));
}

// What of the elements in order is computed.
struct Wanted {
  bool values, positions;
  DType position_dtype;
};

// Up to this extent every pair is compared, in vectors; longer axes are sorted by merging.
constexpr int64_t kMostCompared = 64;

// Sorts positions along an axis by merging runs of 1, 2, 4, ... elements: one block for each row.
class MergeSort {
 public:
  MergeSort(KernelOf& kernel, const Operand& x, size_t axis, bool descending)
      : kernel_(kernel), x_(x), axis_(axis), descending_(descending), extent_(x.shape[axis]) {
    Shape shape = x.shape;
    shape.insert(shape.begin(), int64(2));
    runs_ = kernel.allocate("runs", shape, kInt64);
    for (size_t d = 0; d < x.ndim(); ++d)
      if (d != axis) rows_.push_back(x.shape[d]);
    Shape pair = rows_;
    pair.push_back(int64(2));
    next_ = kernel.allocate("next", pair, kInt64);
  }

  /// The position of the element that stands at `at` in order.
  std::function<Expr(const Indices&)> emit() {
    const Expr passes = this->passes();
    const auto axes = tir::KernelBuilder::axes(rows_);
    row_ = tir::KernelBuilder::indices(axes);
    const auto t = make<tenon::Var>("t", kInt64), p = make<tenon::Var>("p", kInt64),
               u = make<tenon::Var>("u", kInt64);
    const tir::Stmt fill = loop(t, extent_, store_run(int64(0), t, t));
    const tir::Stmt merge = loop(p, passes, loop(u, extent_, step(p, u)));
    kernel_.append(tir::define("merge", axes, {}, tir::seq({fill, merge})));
    const Expr last = floormod(passes, 2);
    return [this, last](const Indices& at) {
      Indices from = at;
      from.insert(from.begin(), last);
      return runs_(from);
    };
  }

 private:
  static tir::Stmt loop(const Ref<tenon::Var>& var, const Expr& extent, const tir::Stmt& body) {
    return make<tir::For>(var, int64(0), extent, tir::ForKind::kSerial, body);
  }
  static Expr shifted(const Expr& x, const Expr& n) {
    return tenon::call(IntrinsicId::kShiftLeft, {x, n});
  }
  // The least p with 2**p >= extent.
  Expr passes() const {
    if (const auto known = as_int(extent_)) {
      int64_t p = 0;
      while (int64_t{1} << p < *known) ++p;
      return int64(p);
    }
    const Expr most = max(extent_ - 1, int64(0));
    return int64(64) - tenon::call(IntrinsicId::kClz, {most});
  }
  Indices at(const Expr& position) const {
    Indices out = row_;
    out.insert(out.begin() + static_cast<std::ptrdiff_t>(axis_), position);
    return out;
  }
  Expr run(const Expr& which, const Expr& position) const {
    Indices from = at(position);
    from.insert(from.begin(), which);
    return runs_(from);
  }
  tir::Stmt store_run(const Expr& which, const Expr& position, const Expr& value) const {
    Indices to = at(position);
    to.insert(to.begin(), which);
    return make<tir::BufferStore>(runs_.buffer, value, to);
  }
  Expr next(int64_t side) const {
    Indices from = row_;
    from.push_back(int64(side));
    return next_(from);
  }
  tir::Stmt store_next(int64_t side, const Expr& value) const {
    Indices to = row_;
    to.push_back(int64(side));
    return make<tir::BufferStore>(next_.buffer, value, to);
  }

  // Result `u` of pass `p`, whose runs have 2**p elements: the lesser of the next elements of two.
  tir::Stmt step(const Expr& p, const Expr& u) const {
    std::vector<tir::Stmt> body;
    const auto bind = [&](const char* name, const Expr& value) -> Expr {
      const auto var = make<tenon::Var>(name, value->dtype);
      body.push_back(make<tir::Bind>(var, value));
      return var;
    };
    const Expr width = bind("width", shifted(int64(1), p));
    const Expr offset = bind("offset", tenon::call(IntrinsicId::kBitwiseAnd, {u, width * 2 - 1}));
    const Expr middle = bind("middle", min(u - offset + width, extent_));
    const Expr end = bind("end", min(u - offset + width * 2, extent_));
    body.push_back(make<tir::IfThenElse>(eq(offset, int64(0)),
                                         tir::seq({store_next(0, u), store_next(1, middle)})));
    const Expr left = bind("left", next(0)), right = bind("right", next(1));
    const Expr from = floormod(p, 2), last = extent_ - 1;
    const Expr mine = bind("mine", run(from, min(left, last)));
    const Expr theirs = bind("theirs", run(from, min(right, last)));
    const Expr a = x_(at(mine)), b = x_(at(theirs));
    const Expr later = descending_ ? is_less(a, b) : is_less(b, a);
    const Expr first = bind(
        "first", logical_and(left < middle, logical_or(right >= end, tenon::logical_not(later))));
    body.push_back(store_run(floormod(p + 1, 2), u, select(first, mine, theirs)));
    body.push_back(store_next(0, select(first, left + 1, left)));
    body.push_back(store_next(1, select(first, right, right + 1)));
    return tir::seq(std::move(body));
  }

  KernelOf& kernel_;
  Operand x_;
  size_t axis_;
  bool descending_;
  Expr extent_;
  Operand runs_, next_;
  Shape rows_;
  Indices row_;
};

std::vector<Operand> merge_along(KernelOf& kernel, const Operand& x, size_t axis, bool descending,
                                 const Shape& shape, const Wanted& wanted) {
  MergeSort sort(kernel, x, axis, descending);
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

std::vector<OpDef> sort_ops() { return {sort(false), sort(true), topk()}; }

}  // namespace tenon::graph
