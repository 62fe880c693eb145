// SPDX-License-Identifier: Apache-2.0
// Determinants, by elimination with the greatest pivot of each column.
#include "tenon/graph/ops/define.h"

namespace tenon::graph {

namespace {

using Shape = std::vector<Expr>;

// The elimination of one matrix of `work`, at the indices `batch`.
class Elimination {
 public:
  Elimination(const Operand& work, const Operand& det, const Operand& pivot, Indices batch)
      : work_(work), det_(det), pivot_(pivot), batch_(std::move(batch)) {
    // Rows and columns are as many: a number, where one of the two is.
    const Expr& rows = work.shape[work.shape.size() - 2];
    n_ = as_int(rows) ? rows : work.shape.back();
  }

  tir::Stmt body() const {
    const auto k = loop("k");
    return tir::seq({store(det_, batch_, one()),
                     nest(k, n_, tir::seq({find(k), swap(k), scale(k), clear(k)}))});
  }

 private:
  static Ref<tenon::Var> loop(const char* name) { return make<tenon::Var>(name, kInt64); }
  static tir::Stmt nest(const Ref<tenon::Var>& var, const Expr& extent, const tir::Stmt& body) {
    return make<tir::For>(var, int64(0), extent, tir::ForKind::kSerial, body);
  }
  static tir::Stmt store(const Operand& to, const Indices& at, const Expr& value) {
    return make<tir::BufferStore>(to.buffer, value, at);
  }
  Expr one() const { return imm(work_.dtype, int64_t{1}); }
  Indices at(const Expr& row, const Expr& column) const {
    Indices out = batch_;
    out.push_back(row);
    out.push_back(column);
    return out;
  }
  Expr element(const Expr& row, const Expr& column) const { return work_(at(row, column)); }
  Expr magnitude(const Expr& row, const Expr& column) const {
    return float_call(IntrinsicId::kFabs, {element(row, column)});
  }

  // The row from k on with the greatest element in column k.
  tir::Stmt find(const Expr& k) const {
    const auto r = loop("r");
    const Expr row = k + 1 + r;
    const Expr greater = magnitude(row, k) > magnitude(pivot_(batch_), k);
    return tir::seq(
        {store(pivot_, batch_, k),
         nest(r, n_ - 1 - k, make<tir::IfThenElse>(greater, store(pivot_, batch_, row)))});
  }
  tir::Stmt swap(const Expr& k) const {
    const auto c = loop("c");
    const auto upper = make<tenon::Var>("upper", work_.dtype),
               lower = make<tenon::Var>("lower", work_.dtype);
    const Expr row = pivot_(batch_);
    const tir::Stmt exchange =
        tir::seq({make<tir::Bind>(upper, element(k, c)), make<tir::Bind>(lower, element(row, c)),
                  store(work_, at(k, c), lower), store(work_, at(row, c), upper)});
    return make<tir::IfThenElse>(
        ne(row, k), tir::seq({nest(c, n_, exchange),
                              store(det_, batch_, imm(work_.dtype, int64_t{0}) - det_(batch_))}));
  }
  tir::Stmt scale(const Expr& k) const { return store(det_, batch_, det_(batch_) * element(k, k)); }
  // Clears the column below the pivot, unless the pivot is 0.
  tir::Stmt clear(const Expr& k) const {
    const auto r = loop("r"), c = loop("c");
    const auto factor = make<tenon::Var>("factor", work_.dtype);
    const Expr row = k + 1 + r, column = k + 1 + c;
    const tir::Stmt subtract =
        nest(c, n_ - 1 - k,
             store(work_, at(row, column), element(row, column) - factor * element(k, column)));
    const tir::Stmt rows =
        nest(r, n_ - 1 - k,
             tir::seq({make<tir::Bind>(factor, element(row, k) / element(k, k)), subtract}));
    return make<tir::IfThenElse>(ne(element(k, k), imm(work_.dtype, int64_t{0})), rows);
  }

  Operand work_, det_, pivot_;
  Indices batch_;
  Expr n_;
};

OpDef det() {
  OpDef op;
  op.name = "linalg.det";
  op.summary = "Determinants of the matrices in the last two axes.";
  op.inputs = {{"x", "(..., n, n)"}};
  op.infer_type = [](const Call& call) -> Type {
    check_float(call, 0);
    const Ref<TensorType> x = tensor_arg(call, 0);
    if (x->ndim >= 0 && x->ndim < 2)
      throw CompileError(kRankMismatch, call.origin,
                         "argument `x` of `{}` is {}; expected rank 2 or more", call.op->name,
                         str(x));
    if (!x->shape) return make<TensorType>(x->dtype, x->ndim < 0 ? -1 : x->ndim - 2);
    check_dim(call, 0, x->dim(-1), x->dim(-2), "the last dimension");
    return tensor_of(Shape(x->shape->begin(), x->shape->end() - 2), x->dtype, 0);
  };
  op.lower = [](BlockBuilder& builder, const Call& call) {
    KernelOf kernel(builder, call);
    const Operand x = kernel.wide_arg(0);
    const Operand work = kernel.compute("work", x.shape, [&](const Indices& i) { return x(i); });
    const Operand det = kernel.allocate(kernel.out_name(), kernel.shape(), x.dtype);
    const Operand pivot = kernel.allocate("pivot", kernel.shape(), kInt64);
    const auto axes = tir::KernelBuilder::axes(kernel.shape());
    const Elimination elimination(work, det, pivot, tir::KernelBuilder::indices(axes));
    kernel.append(tir::define("eliminate", axes, {}, elimination.body()));
    return kernel.emit({det});
  };
  op.source = "NumPy, linalg.det";
  return op;
}

}  // namespace

std::vector<OpDef> determinant_ops() { return {det()}; }

}  // namespace tenon::graph
