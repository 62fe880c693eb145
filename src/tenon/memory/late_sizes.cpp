// SPDX-License-Identifier: Apache-2.0
#include "tenon/memory/late_sizes.h"

#include <algorithm>

#include "tenon/ir/visit.h"

namespace tenon::memory {

LateSizes::LateSizes(const tir::PrimFunc& function) : last_(1) { visit(function.body); }

void LateSizes::visit(const tir::Stmt& stmt) {
  if (!stmt) return;
  if (const auto* sequence = stmt.as<tir::Seq>()) {
    for (const tir::Stmt& inner : sequence->stmts) visit(inner);
    return;
  }
  if (const auto* bind = stmt.as<tir::Bind>()) {
    bool reads = false;
    walk<tir::BufferLoad>(bind->value, [&](const tir::BufferLoad&) { reads = true; });
    if (!reads) {
      level_[bind->var.get()] = level_of(bind->value);
      return;
    }
    if (is_open_)
      last_.back() = bind;
    else
      last_.push_back(bind);
    is_open_ = true;
    level_[bind->var.get()] = last_.size() - 1;
    return;
  }
  if (const auto* assertion = stmt.as<tir::Assert>()) {
    // What the program says of its numbers holds before memory is asked for.
    if (is_open_) last_.back() = assertion;
    return note_fact(assertion->condition);
  }
  is_open_ = false;
  if (const auto* branch = stmt.as<tir::IfThenElse>()) {
    visit(branch->then_case);
    is_open_ = false;
    visit(branch->else_case);
  } else if (const auto* loop = stmt.as<tir::For>()) {
    visit(loop->body);
  } else if (const auto* loop = stmt.as<tir::While>()) {
    visit(loop->body);
  }
  is_open_ = false;
}

// `n <= e` and `e >= n`, `n < e` and `e > n`, and both sides of an `and`.
void LateSizes::note_fact(const Expr& condition) {
  const auto* fact = condition.as<Binary>();
  if (!fact) return;
  const auto note = [&](const Expr& var, const Expr& most) {
    const auto it = level_.find(var.get());
    if (var.as<Var>() && it != level_.end() && level_of(most) < it->second)
      most_.try_emplace(var.get(), most);
  };
  switch (fact->op) {
    case BinaryOp::kAnd:
      note_fact(fact->lhs);
      note_fact(fact->rhs);
      return;
    case BinaryOp::kLE: return note(fact->lhs, fact->rhs);
    case BinaryOp::kGE: return note(fact->rhs, fact->lhs);
    case BinaryOp::kLT: return note(fact->lhs, fact->rhs - 1);
    case BinaryOp::kGT: return note(fact->rhs, fact->lhs - 1);
    default: return;
  }
}

size_t LateSizes::level_of(const Expr& size) const {
  size_t level = 0;
  walk<Var>(size, [&](const Var& var) {
    const auto it = level_.find(&var);
    if (it != level_.end()) level = std::max(level, it->second);
  });
  return level;
}

// Whether something is subtracted in a size, so that it may be negative though dimensions are not.
static bool takes_off(const Expr& size) {
  bool found = false;
  walk<Binary>(size, [&](const Binary& op) { found = found || op.op == BinaryOp::kSub; });
  walk<IntImm>(size, [&](const IntImm& number) { found = found || number.value < 0; });
  return found;
}

// Dimensions are not negative (the program asserts it), so their products grow with their parts; a
// negative factor turns what its product grows with around.
Expr LateSizes::extreme(const Expr& size, bool greatest) const {
  if (level_of(size) == 0) return size;
  if (size.as<Var>()) {
    const auto it = most_.find(size.get());
    return it == most_.end() || !greatest ? Expr() : extreme(it->second, true);
  }
  if (const auto* inner = size.as<Cast>()) {
    const Expr bound = extreme(inner->value, greatest);
    return bound ? cast(inner->dtype, bound) : bound;
  }
  if (const auto* choice = size.as<Select>()) {
    const Expr a = extreme(choice->true_value, greatest),
               b = extreme(choice->false_value, greatest);
    if (!a || !b) return {};
    return greatest ? max(a, b) : min(a, b);
  }
  const auto* op = size.as<Binary>();
  if (!op) return {};
  if (op->op == BinaryOp::kMul) return extreme_of_product(*op, greatest);
  const Expr a = extreme(op->lhs, greatest);
  const Expr b = extreme(op->rhs, op->op == BinaryOp::kSub ? !greatest : greatest);
  switch (op->op) {
    case BinaryOp::kAdd:
    case BinaryOp::kSub: return a && b ? binary(op->op, a, b) : Expr();
    case BinaryOp::kMax:
    case BinaryOp::kMin:
      if (a && b) return binary(op->op, a, b);
      // Either operand bounds the result on the side to which it is chosen.
      if ((op->op == BinaryOp::kMin) != greatest) return {};
      return a ? a : b;
    case BinaryOp::kFloorDiv:
      return a && as_int(op->rhs).value_or(0) > 0 ? floordiv(a, op->rhs) : Expr();
    default: return {};
  }
}

Expr LateSizes::extreme_of_product(const Binary& op, bool greatest) const {
  for (const auto& [factor, other] : {std::pair{op.lhs, op.rhs}, std::pair{op.rhs, op.lhs}}) {
    const auto known = as_int(factor);
    if (!known) continue;
    const Expr bound = extreme(other, (*known >= 0) == greatest);
    return bound ? bound * factor : Expr();
  }
  if (!greatest || takes_off(op.lhs) || takes_off(op.rhs)) return {};
  const Expr a = extreme(op.lhs, true), b = extreme(op.rhs, true);
  return a && b ? a * b : Expr();
}

Expr LateSizes::bound_of(const Expr& size) const {
  // A bound that only keeps sums from wrapping plans more than anyone has.
  constexpr int64_t kMost = int64_t{1} << 32;
  const Expr bound = extreme(size, true);
  return bound && as_int(bound).value_or(0) > kMost ? Expr() : bound;
}

}  // namespace tenon::memory
