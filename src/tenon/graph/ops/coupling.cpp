// SPDX-License-Identifier: Apache-2.0
// Probabilities of classes from those of pairs of them.
#include "tenon/graph/ops/define.h"

namespace tenon::graph {

namespace {

// The kernel of `pairwise_coupling`: a row is a block, which goes round until p moves little.
class Coupling {
 public:
  Coupling(KernelOf& kernel, const Operand& r)
      : kernel_(kernel),
        r_(r),
        rows_(r.shape[0]),
        classes_(r.shape[1]),
        axes_(tir::KernelBuilder::axes({rows_})),
        row_(axes_[0].var),
        p_(kernel.allocate(kernel.out_name(), {rows_, classes_}, r.dtype)),
        q_(kernel.allocate("q", {rows_, classes_, classes_}, r.dtype)),
        qp_(kernel.allocate("qp", {rows_, classes_}, r.dtype)),
        sum_(kernel.allocate("sum", {rows_}, r.dtype)),
        error_(kernel.allocate("error", {rows_}, r.dtype)),
        rounds_(kernel.allocate("rounds", {rows_}, kInt64)) {}

  Operand run() {
    constexpr int64_t kRounds = 100;
    const Expr most = max(classes_, int64(kRounds));
    const Expr count = tenon::cast(r_.dtype, classes_);
    const tir::Stmt stop = set(rounds_, most),
                    go_on = tir::seq({each("t", [&](const Expr& t) { return improve(t); }),
                                      set(rounds_, rounds_({row_}) + 1)});
    const tir::Stmt round =
        tir::seq({set(sum_, number(0)), each("t", [&](const Expr& t) { return product(t); }),
                  set(error_, number(0)),
                  each("t",
                       [&](const Expr& t) {
                         const Expr apart = tenon::call(IntrinsicId::kFabs, {qp(t) - sum_({row_})});
                         return set(error_, max(error_({row_}), apart));
                       }),
                  make<tir::IfThenElse>(error_({row_}) < number(0.005) / count, stop, go_on)});
    const tir::Stmt body =
        tir::seq({each("t", [&](const Expr& t) { return begin(t, number(1) / count); }),
                  set(rounds_, int64(0)), make<tir::While>(rounds_({row_}) < most, round)});
    kernel_.append(tir::define(kernel_.name(), axes_, {}, body));
    return p_;
  }

 private:
  Expr number(double value) const { return imm(r_.dtype, value); }
  Expr p(const Expr& t) const { return p_({row_, t}); }
  Expr qp(const Expr& t) const { return qp_({row_, t}); }
  Expr q(const Expr& t, const Expr& j) const { return q_({row_, t, j}); }
  tir::Stmt set(const Operand& to, const Expr& value) const {
    return make<tir::BufferStore>(to.buffer, value, Indices{row_});
  }
  tir::Stmt set(const Operand& to, const Indices& at, const Expr& value) const {
    Indices all = at;
    all.insert(all.begin(), row_);
    return make<tir::BufferStore>(to.buffer, value, all);
  }
  tir::Stmt each(const char* name, const std::function<tir::Stmt(const Expr&)>& body) const {
    const auto var = make<tenon::Var>(name, kInt64);
    return make<tir::For>(var, int64(0), classes_, tir::ForKind::kSerial, body(Expr(var)));
  }

  // Row t of Q: -r[j, t] r[t, j], and on the diagonal the sum of r[j, t]^2; p begins equal.
  tir::Stmt begin(const Expr& t, const Expr& share) {
    const auto r = [&](const Expr& a, const Expr& b) { return r_({row_, a, b}); };
    return tir::seq({set(p_, {t}, share), set(q_, {t, t}, number(0)), each("j", [&](const Expr& j) {
                       return make<tir::IfThenElse>(
                           ne(j, t), tir::seq({set(q_, {t, j}, number(0) - r(j, t) * r(t, j)),
                                               set(q_, {t, t}, q(t, t) + r(j, t) * r(j, t))}));
                     })});
  }
  // (Q p)[t], and p Q p so far.
  tir::Stmt product(const Expr& t) {
    return tir::seq(
        {set(qp_, {t}, number(0)),
         each("j", [&](const Expr& j) { return set(qp_, {t}, qp(t) + q(t, j) * p(j)); }),
         set(sum_, sum_({row_}) + p(t) * qp(t))});
  }
  // A step along coordinate t, by which p, Q p and p Q p follow. `error` holds the step.
  tir::Stmt improve(const Expr& t) {
    const Expr step = error_({row_}), scale = number(1) + step;
    const Expr sum = (sum_({row_}) + step * (step * q(t, t) + number(2) * qp(t))) / scale / scale;
    return tir::seq({set(error_, (sum_({row_}) - qp(t)) / q(t, t)), set(p_, {t}, p(t) + step),
                     set(sum_, sum), each("j", [&](const Expr& j) {
                       return tir::seq({set(qp_, {j}, (qp(j) + step * q(t, j)) / scale),
                                        set(p_, {j}, p(j) / scale)});
                     })});
  }

  KernelOf& kernel_;
  Operand r_;
  Expr rows_, classes_;
  std::vector<tir::Axis> axes_;
  Expr row_;
  Operand p_, q_, qp_, sum_, error_, rounds_;
};

OpDef pairwise_coupling() {
  OpDef op;
  op.name = "pairwise_coupling";
  op.summary = "The probabilities of classes that fit those of pairs of them best.";
  op.inputs = {{"r", "(rows, classes, classes), floats: r[n, i, j] that i is it and not j"}};
  op.infer_type = [](const Call& call) -> Type {
    check_rank(call, 0, 3);
    check_float(call, 0);
    const Ref<TensorType> r = tensor_arg(call, 0);
    if (!r->shape) return make<TensorType>(r->dtype, 2);
    check_dim(call, 0, r->dim(2), r->dim(1), "dimension 2");
    return make<TensorType>(std::vector<Expr>{r->dim(0), r->dim(1)}, r->dtype);
  };
  op.lower = [](BlockBuilder& builder, const Call& call) {
    KernelOf kernel(builder, call);
    Coupling coupling(kernel, KernelOf::wide(kernel.buffer_arg(0)));
    return kernel.emit({coupling.run()});
  };
  op.source = "Wu, Lin and Weng, JMLR 5 (2004), algorithm 2, to 0.005 / classes";
  return op;
}

}  // namespace

std::vector<OpDef> coupling_ops() { return {pairwise_coupling()}; }

}  // namespace tenon::graph
