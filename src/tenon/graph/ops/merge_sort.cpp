// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/ops/merge_sort.h"

namespace tenon::graph {

Expr is_less(const Expr& a, const Expr& b) {
  if (!a->dtype.is_float()) return a < b;
  return logical_or(a < b, logical_and(ne(b, b), eq(a, a)));
}

MergeSort::MergeSort(KernelOf& kernel, const std::vector<Expr>& shape, size_t axis, Behind behind)
    : kernel_(kernel), axis_(axis), behind_(std::move(behind)), extent_(shape[axis]) {
  std::vector<Expr> both = shape;
  both.insert(both.begin(), int64(2));
  runs_ = kernel.allocate("runs", both, kInt64);
  for (size_t d = 0; d < shape.size(); ++d)
    if (d != axis) rows_.push_back(shape[d]);
  std::vector<Expr> pair = rows_;
  pair.push_back(int64(2));
  next_ = kernel.allocate("next", pair, kInt64);
}

std::function<Expr(const Indices&)> MergeSort::emit() {
  const Expr passes = this->passes();
  const auto axes = tir::KernelBuilder::axes(rows_);
  row_ = tir::KernelBuilder::indices(axes);
  Statements body;
  body.loop("t", extent_,
            [&](Statements& fill, const Expr& t) { store_run(fill, int64(0), t, t); });
  body.loop("p", passes, [&](Statements& pass, const Expr& p) {
    pass.loop("u", extent_, [&](Statements& merge, const Expr& u) { step(merge, p, u); });
  });
  kernel_.append(tir::define("merge", axes, {}, std::move(body).all()));
  return [runs = runs_, last = floormod(passes, 2)](const Indices& at) {
    Indices from = at;
    from.insert(from.begin(), last);
    return runs(from);
  };
}

// The least p with 2**p >= extent.
Expr MergeSort::passes() const {
  if (const auto known = as_int(extent_)) {
    int64_t p = 0;
    while (int64_t{1} << p < *known) ++p;
    return int64(p);
  }
  const Expr most = max(extent_ - 1, int64(0));
  return int64(64) - tenon::call(IntrinsicId::kClz, {most});
}

Indices MergeSort::at(const Expr& position) const {
  Indices out = row_;
  out.insert(out.begin() + static_cast<std::ptrdiff_t>(axis_), position);
  return out;
}

Expr MergeSort::run(const Expr& which, const Expr& position) const {
  Indices from = at(position);
  from.insert(from.begin(), which);
  return runs_(from);
}

void MergeSort::store_run(Statements& body, const Expr& which, const Expr& position,
                          const Expr& value) const {
  Indices to = at(position);
  to.insert(to.begin(), which);
  body.store(runs_, to, value);
}

Expr MergeSort::next(int64_t side) const {
  Indices from = row_;
  from.push_back(int64(side));
  return next_(from);
}

void MergeSort::store_next(Statements& body, int64_t side, const Expr& value) const {
  Indices to = row_;
  to.push_back(int64(side));
  body.store(next_, to, value);
}

// Result `u` of pass `p`, whose runs have 2**p elements: the lesser of the next elements of two.
void MergeSort::step(Statements& body, const Expr& p, const Expr& u) const {
  const Expr width = body.bind("width", tenon::call(IntrinsicId::kShiftLeft, {int64(1), p}));
  const Expr offset =
      body.bind("offset", tenon::call(IntrinsicId::kBitwiseAnd, {u, width * 2 - 1}));
  const Expr middle = body.bind("middle", min(u - offset + width, extent_));
  const Expr end = body.bind("end", min(u - offset + width * 2, extent_));
  body.when(eq(offset, int64(0)), [&](Statements& inner) {
    store_next(inner, 0, u);
    store_next(inner, 1, middle);
  });
  const Expr left = body.bind("left", next(0)), right = body.bind("right", next(1));
  const Expr from = floormod(p, 2), last = extent_ - 1;
  const Expr mine = body.bind("mine", run(from, min(left, last)));
  const Expr theirs = body.bind("theirs", run(from, min(right, last)));
  const Expr behind = behind_(body, at(mine), at(theirs));
  const Expr first = body.bind(
      "first", logical_and(left < middle, logical_or(right >= end, tenon::logical_not(behind))));
  store_run(body, floormod(p + 1, 2), u, select(first, mine, theirs));
  store_next(body, 0, select(first, left + 1, left));
  store_next(body, 1, select(first, right, right + 1));
}

}  // namespace tenon::graph
