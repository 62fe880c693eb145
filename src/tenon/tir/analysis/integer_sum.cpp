// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/analysis/integer_sum.h"

#include <algorithm>
#include <limits>

namespace tenon::tir {

namespace {

constexpr double kLargestProduct = 4 * 255 * 128;  // of four unsigned and four signed bytes

bool is_product(const Expr& expr) {
  const auto* call = expr.as<Call>();
  return call && call->is(IntrinsicId::kDot4) && call->dtype.element() == kInt32;
}

class Summation {
 public:
  Summation(int64_t terms, const std::function<bool(const Expr&)>& varies,
            const std::function<Expr(size_t)>& of_sum)
      : terms_(terms), varies_(varies), of_sum_(of_sum) {}

  std::vector<Expr> products;

  /// The sum of floats; null where the expression has another form.
  Expr floats(const Expr& expr) {
    if (!varies_(expr)) return expr * imm(kFloat32, static_cast<double>(terms_));
    if (const auto* cast = expr.as<Cast>()) {
      if (cast->dtype != kFloat32 || cast->value->dtype != kInt32) return {};
      double most = 0;
      const Expr sum = integers(cast->value, 1, most);
      const bool fits = most * static_cast<double>(terms_) <= std::numeric_limits<int32_t>::max();
      return sum && fits ? tenon::cast(kFloat32, sum) : Expr();
    }
    const auto* op = expr.as<Binary>();
    if (!op) return {};
    if (op->op == BinaryOp::kMul) {
      const bool left = varies_(op->lhs);
      if (left && varies_(op->rhs)) return {};
      const Expr sum = floats(left ? op->lhs : op->rhs);
      if (!sum) return {};
      return left ? sum * op->rhs : op->lhs * sum;
    }
    if (op->op != BinaryOp::kAdd && op->op != BinaryOp::kSub) return {};
    const Expr a = floats(op->lhs), b = a ? floats(op->rhs) : Expr();
    return b ? binary(op->op, a, b) : Expr();
  }

 private:
  /// The sum of integers, each of which counts `factor` times; `most` grows by what it may be.
  Expr integers(const Expr& expr, double factor, double& most) {
    if (is_product(expr)) {
      most += kLargestProduct * factor;
      products.push_back(expr);
      return of_sum_(products.size() - 1);
    }
    const auto* op = expr.as<Binary>();
    if (!op) return {};
    if (op->op == BinaryOp::kMul) {
      const auto times = as_int(op->rhs);
      if (!times) return {};
      const Expr sum = integers(op->lhs, factor * static_cast<double>(std::abs(*times)), most);
      return sum ? sum * op->rhs : Expr();
    }
    if (op->op != BinaryOp::kAdd) return {};
    const Expr a = integers(op->lhs, factor, most);
    const Expr b = a ? integers(op->rhs, factor, most) : Expr();
    return b ? a + b : Expr();
  }

  const int64_t terms_;
  const std::function<bool(const Expr&)>& varies_;
  const std::function<Expr(size_t)>& of_sum_;
};

}  // namespace

std::optional<IntegerSum> integer_sum(const Expr& term, int64_t terms,
                                      const std::function<bool(const Expr&)>& varies,
                                      const std::function<Expr(size_t)>& of_sum) {
  if (term->dtype != kFloat32 || terms < 1) return std::nullopt;
  Summation summation(terms, varies, of_sum);
  Expr total = summation.floats(term);
  if (!total || summation.products.empty()) return std::nullopt;
  return IntegerSum{std::move(summation.products), std::move(total)};
}

int64_t count_products(const Block& block) {
  int64_t count = 0;
  const auto* store = block.body.as<BufferStore>();
  if (!store || store->buffer->dtype != kFloat32) return 0;
  walk<Call>(store->value, [&](const Call& call) { count += is_product(ref_to(&call)); });
  return count;
}

}  // namespace tenon::tir
