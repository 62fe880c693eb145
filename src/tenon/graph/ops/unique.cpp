// SPDX-License-Identifier: Apache-2.0
// Where each distinct element stands first. Elements, or rows, are sorted; equal ones are neighbours
// then, the first of them in front, because the sort keeps their order.
#include "tenon/graph/ops/merge_sort.h"

namespace tenon::graph {

namespace {

using Shape = std::vector<Expr>;

struct UniqueAttrs {
  bool sorted = true;
  static auto table() {
    return std::tuple{attr<&UniqueAttrs::sorted>(
        "sorted", "least first; otherwise in the order in which they come")};
  }
};

Type infer_unique(const Call& call) {
  const Ref<TensorType> x = tensor_arg(call, 0);
  if (!accepts(Takes::kNumber, x->dtype))
    throw CompileError(kDTypeMismatch, call.origin,
                       "argument `x` of `unique_positions` has dtype {}; expected a number",
                       x->dtype.str());
  if (x->ndim >= 0 && x->ndim != 1 && x->ndim != 2)
    throw CompileError(kRankMismatch, call.origin,
                       "argument `x` of `unique_positions` is {}; expected rank 1 or 2", str(x));
  const Type each =
      x->shape ? make<TensorType>(Shape{x->dim(0)}, kInt64) : make<TensorType>(kInt64, 1);
  return make<TupleType>(std::vector<Type>{each, each, each, make<TensorType>(Shape{}, kInt64)});
}

class Unique {
 public:
  Unique(KernelOf& kernel, const Call& call)
      : kernel_(kernel),
        x_(kernel.arg(0)),
        extent_(x_.shape[0]),
        sorted_(attrs_as<UniqueAttrs>(call).sorted),
        first_(vector("first")),
        inverse_(vector("inverse")),
        counts_(vector("counts")),
        count_(kernel.allocate("count", {}, kInt64)) {
    if (x_.ndim() == 2) column_ = kernel.allocate("column", {int64(1)}, kInt64);
  }

  Value emit() {
    MergeSort sort(kernel_, {extent_}, 0,
                   [&](Statements& body, const Indices& a, const Indices& b) {
                     return is_less_row(body, b[0], a[0]);
                   });
    const auto position = sort.emit();
    Statements body;
    body.store(count_, {}, int64(0));
    body.loop("t", extent_, [&](Statements& inner, const Expr& t) { group(inner, position, t); });
    if (!sorted_) by_first(body);
    if (!is_int(extent_, 0))
      body.loop("rest", extent_ - count_({}), [&](Statements& inner, const Expr& j) {
        inner.store(first_, {extent_ - 1 - j}, int64(0));
        inner.store(counts_, {extent_ - 1 - j}, int64(0));
      });
    kernel_.append(tir::define("groups", {}, {}, std::move(body).all()));
    return kernel_.emit({first_, inverse_, counts_, count_});
  }

 private:
  Operand vector(const char* name) { return kernel_.allocate(name, {extent_}, kInt64); }

  Expr is_less_row(Statements& body, const Expr& a, const Expr& b) {
    if (x_.ndim() == 1) return is_less(x_({a}), x_({b}));
    const Expr columns = x_.shape[1], column = column_({int64(0)});
    const Expr mine = x_({a, column}), theirs = x_({b, column});
    Expr same = eq(mine, theirs);
    if (mine->dtype.is_float())
      same = logical_or(same, logical_and(ne(mine, mine), ne(theirs, theirs)));
    body.store(column_, {int64(0)}, int64(0));
    body.loop_while(if_then_else(column < columns, same, boolean(false)),
                    [&](Statements& inner) { inner.store(column_, {int64(0)}, column + 1); });
    return if_then_else(column < columns, is_less(mine, theirs), boolean(false));
  }

  // Element `t` in order belongs to the last group, or begins another.
  void group(Statements& body, const std::function<Expr(const Indices&)>& position, const Expr& t) {
    const Expr mine = body.bind("mine", position({t}));
    const Expr before = body.bind("before", position({max(t - 1, int64(0))}));
    const Expr differs = body.bind("differs", is_less_row(body, before, mine));
    body.when(logical_or(eq(t, int64(0)), differs), [&](Statements& inner) {
      inner.store(first_, {count_({})}, mine);
      inner.store(counts_, {count_({})}, int64(0));
      inner.store(count_, {}, count_({}) + 1);
    });
    const Expr last = body.bind("last", count_({}) - 1);
    body.store(inverse_, {mine}, last);
    body.store(counts_, {last}, counts_({last}) + 1);
  }

  // Groups in the order in which their first elements come.
  void by_first(Statements& body) {
    const Operand sizes = vector("sizes"), starts = vector("starts"), place = vector("place");
    body.loop("p", extent_,
              [&](Statements& inner, const Expr& p) { inner.store(starts, {p}, int64(-1)); });
    body.loop("g", count_({}), [&](Statements& inner, const Expr& g) {
      inner.store(starts, {first_({g})}, g);
      inner.store(sizes, {g}, counts_({g}));
    });
    body.store(count_, {}, int64(0));
    body.loop("p", extent_, [&](Statements& inner, const Expr& p) {
      inner.when(starts({p}) >= int64(0), [&](Statements& each) {
        const Expr g = each.bind("group", starts({p})), at = each.bind("at", count_({}));
        each.store(first_, {at}, p);
        each.store(counts_, {at}, sizes({g}));
        each.store(place, {g}, at);
        each.store(count_, {}, at + 1);
      });
    });
    body.loop("p", extent_, [&](Statements& inner, const Expr& p) {
      inner.store(inverse_, {p}, place({inverse_({p})}));
    });
  }

  KernelOf& kernel_;
  Operand x_;
  Expr extent_;
  bool sorted_;
  Operand first_, inverse_, counts_, count_, column_;
};

}  // namespace

OpDef unique_positions() {
  OpDef op;
  op.name = "unique_positions";
  op.summary =
      "Of the distinct elements (or rows) of x: where each stands first, which of them each "
      "element "
      "is, how often each occurs (0 behind the last), and their number. A tuple.";
  op.inputs = {{"x", "rank 1, or 2: its rows"}};
  op.attrs = attrs_of<UniqueAttrs>();
  op.infer_type = infer_unique;
  op.lower = [](BlockBuilder& builder, const Call& call) {
    KernelOf kernel(builder, call);
    return Unique(kernel, call).emit();
  };
  op.source = "NumPy, unique: NaN equals NaN";
  return op;
}

}  // namespace tenon::graph
