// SPDX-License-Identifier: Apache-2.0
// Where the elements are that are not 0.
#include "tenon/graph/ops/merge_sort.h"

namespace tenon::graph {

namespace {

using Shape = std::vector<Expr>;

Type infer_nonzero(const Call& call) {
  const Ref<TensorType> x = tensor_arg(call, 0);
  if (x->ndim == 0)
    throw CompileError(kRankMismatch, call.origin,
                       "argument `x` of `nonzero` is {}; expected rank 1 or more", str(x));
  const auto size = present(call, 1) ? dims_arg(call, 1) : std::nullopt;
  if (size && size->size() != 1)
    throw CompileError(kBadArgument, call.origin,
                       "argument `size` of `nonzero` has {} numbers; expected 1", size->size());
  if (x->ndim < 0 || !size) return make<TensorType>(kInt64, 2);
  return make<TensorType>(Shape{int64(x->ndim), (*size)[0]}, kInt64);
}

Value lower_nonzero(BlockBuilder& builder, const Call& call) {
  if (!present(call, 1))
    throw CompileError(kUnsupported, call.origin,
                       "`nonzero` has no `size`: how many elements are not 0");
  KernelOf kernel(builder, call);
  const Operand x = kernel.arg(0);
  const Expr count = kernel.shape()[1];
  const Operand out = kernel.allocate(kernel.out_name(), kernel.shape(), kInt64);
  const Operand found = kernel.allocate("found", {int64(1)}, kInt64);
  const Expr at = found({int64(0)});
  const auto row = [](size_t d) { return int64(static_cast<int64_t>(d)); };
  // A loop for each axis, so that no place is divided into indices.
  std::function<void(Statements&, const Indices&)> along = [&](Statements& body, const Indices& i) {
    if (i.size() < x.ndim())
      return body.loop("i", x.shape[i.size()], [&](Statements& inner, const Expr& next) {
        Indices longer = i;
        longer.push_back(next);
        along(inner, longer);
      });
    const Expr value = x(i);
    const Expr counts = value->dtype.is_bool() ? value : ne(value, imm(value->dtype, int64_t{0}));
    body.when(logical_and(counts, at < count), [&](Statements& inner) {
      for (size_t d = 0; d < i.size(); ++d) inner.store(out, {row(d), at}, i[d]);
      inner.store(found, {int64(0)}, at + 1);
    });
  };
  Statements body;
  body.store(found, {int64(0)}, int64(0));
  if (!is_int(count, 0)) {  // of no columns there is nothing to store
    along(body, {});
    body.loop("rest", max(count - at, int64(0)), [&](Statements& inner, const Expr& j) {
      for (size_t d = 0; d < x.ndim(); ++d) inner.store(out, {row(d), count - 1 - j}, int64(0));
    });
  }
  kernel.append(tir::define(kernel.name(), {}, {}, std::move(body).all()));
  return kernel.emit({out});
}

}  // namespace

OpDef nonzero() {
  OpDef op;
  op.name = "nonzero";
  op.summary =
      "The places of the first `size` elements that are not 0, a column each, in order; 0 where "
      "there are fewer.";
  op.inputs = {{"x", "rank 1 or more"},
               {"size", "a shape of one number: how many; left out: all, for types only", true}};
  op.infer_type = infer_nonzero;
  op.lower = lower_nonzero;
  op.source = "ONNX NonZero-13";
  return op;
}

}  // namespace tenon::graph
