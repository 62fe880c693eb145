// SPDX-License-Identifier: Apache-2.0
#include "tenon/interp/indices.h"

#include <algorithm>

namespace tenon::interp {

const Affine* Indices::find(const Node* var) const {
  const auto found = defined_.find(var);
  return found == defined_.end() ? nullptr : &found->second;
}

Affine Indices::combined(const Affine& a, const Affine& b, int64_t factor) const {
  Affine out = a;
  out.constant += b.constant * factor;
  for (const auto& [slot, coefficient] : b.terms) {
    const auto at =
        std::lower_bound(out.terms.begin(), out.terms.end(), std::pair(slot, INT64_MIN));
    if (at == out.terms.end() || at->first != slot) {
      out.terms.insert(at, {slot, coefficient * factor});
    } else if ((at->second += coefficient * factor) == 0) {
      out.terms.erase(at);
    }
  }
  return out;
}

Bounds Indices::bounds_everywhere(const Affine& value) const {
  Bounds all = Bounds::of(value.constant);
  for (const auto& [slot, coefficient] : value.terms)
    all = all + emitter_.bounds_of(slot) * coefficient;
  return all;
}

Bounds Indices::bounds(const Affine& value) const {
  Bounds all = bounds_everywhere(value);
  for (const Assumption& known : assumed_) {
    if (known.terms == value.terms) {
      const Bounds shifted = known.bounds + Bounds::of(value.constant);
      all = {std::max(all.low, shifted.low), std::min(all.high, shifted.high)};
    }
  }
  return all;
}

bool Indices::is_settled(const Affine& value) const {
  return std::all_of(value.terms.begin(), value.terms.end(),
                     [&](const auto& term) { return emitter_.is_settled(term.first); });
}

std::optional<Affine> Indices::sum(const Expr& expr) {
  if (no_sums_.count(expr.get())) return std::nullopt;
  auto found = find_sum(expr);
  if (!found && (expr.as<Binary>() || expr.as<Cast>())) no_sums_[expr.get()] = true;
  return found;
}

// Elements of memory are loaded where they stand, once.
static bool has_load(const Expr& expr) {
  bool found = false;
  walk(expr, [&](const NodePtr& node) {
    found = found || node.as<tir::BufferLoad>() || node.as<tenon::Call>();
  });
  return found;
}

std::optional<Affine> Indices::find_sum(const Expr& expr) {
  if (!expr->dtype.is_integer() || expr->dtype.lanes != 1) return std::nullopt;
  if (const auto value = as_int(expr)) return Affine{{}, *value};
  if (const auto* var = expr.as<Var>()) {
    const Affine* known = find(var);
    return known ? std::optional(*known) : std::nullopt;
  }
  const Bounds fits = Bounds::of(expr->dtype);
  const auto checked = [&](Affine value) -> std::optional<Affine> {
    const Bounds range = bounds(value);
    // Also what 64 bits hold may wrap, where nothing is known.
    if (!range.is_known() || !range.within(fits)) return std::nullopt;
    return value;
  };
  if ((!expr.as<Cast>() && !expr.as<Binary>()) || has_load(expr)) return std::nullopt;
  if (const auto* cast = expr.as<Cast>()) {
    if (!cast->value->dtype.is_integer()) return std::nullopt;
    return checked(affine(cast->value));
  }
  const auto* op = expr.as<Binary>();
  if (!op) return std::nullopt;
  if (op->op == BinaryOp::kAdd || op->op == BinaryOp::kSub) {
    const Affine a = affine(op->lhs), b = affine(op->rhs);
    if (!bounds(a).is_known() || !bounds(b).is_known()) return std::nullopt;
    return checked(combined(a, b, op->op == BinaryOp::kAdd ? 1 : -1));
  }
  if (op->op != BinaryOp::kMul) return std::nullopt;
  const auto times = as_int(op->rhs) ? as_int(op->rhs) : as_int(op->lhs);
  constexpr int64_t kMostFactor = int64_t{1} << 40;
  if (times && std::abs(*times) < kMostFactor) {
    const Affine a = affine(as_int(op->rhs) ? op->lhs : op->rhs);
    const Bounds range = bounds(a) * *times;
    if (!bounds(a).is_known() || !range.is_known()) return std::nullopt;
    if (*times == 0) return Affine{};
    return checked(combined({}, a, *times));
  }
  const Affine a = affine(op->lhs), b = affine(op->rhs);
  for (const auto& [x, y] : {std::pair(&a, &b), std::pair(&b, &a)})
    if (y->terms.empty() && y->constant != 0 && std::abs(y->constant) < kMostFactor &&
        (bounds(*x) * y->constant).is_known())
      return checked(combined({}, *x, y->constant));
  return std::nullopt;
}

Affine Indices::affine(const Expr& expr) {
  if (auto value = sum(expr)) return std::move(*value);
  return {{{slot_of_(expr), 1}}, 0};
}

int32_t Indices::constant(int64_t value) {
  const int32_t slot = emitter_.constant(false, {.i = value});
  if (slot >= 0) return slot;
  Instr instr{.op = Op::kImmediate};
  instr.immediate.i = value;
  return emitter_.value(instr, {}, Bounds::of(value));
}

int32_t Indices::slot(const Affine& value) {
  if (value.terms.empty()) return constant(value.constant);
  if (value.terms.size() == 1 && value.terms[0].second == 1 && value.constant == 0)
    return value.terms[0].first;
  std::vector<std::pair<int32_t, int64_t>> terms = value.terms;
  // What varies least first, so that its sum is computed outside.
  std::sort(terms.begin(), terms.end(), [&](const auto& a, const auto& b) {
    const auto order = [&](const auto& term) {
      return std::pair(static_cast<unsigned>(emitter_.depth_of(term.first)), term.first);
    };
    return order(a) < order(b);
  });
  Affine so_far{{}, value.constant};
  int32_t sum = constant(value.constant);
  for (const auto& [term, factor] : terms) {
    so_far = combined(so_far, {{{term, 1}}, 0}, factor);
    Instr instr{.op = Op::kMulAdd, .a = sum, .b = term};
    instr.immediate.i = factor;
    // It may be computed in front of the condition, and be used again behind it.
    sum = emitter_.value(instr, {sum, term}, bounds_everywhere(so_far));
  }
  return sum;
}

std::optional<Affine> Indices::difference(const Expr& a, const Expr& b) {
  if (!a->dtype.is_integer() || a->dtype.lanes != 1) return std::nullopt;
  const auto x = sum(a), y = sum(b);
  if (!x || !y || !bounds(*x).is_known() || !bounds(*y).is_known()) return std::nullopt;
  return combined(*x, *y, -1);
}

// What a - b lies between where `a op b` holds.
static std::optional<Bounds> where(BinaryOp op) {
  switch (op) {
    case BinaryOp::kLT: return Bounds{-Bounds::kFar, -1};
    case BinaryOp::kLE: return Bounds{-Bounds::kFar, 0};
    case BinaryOp::kGT: return Bounds{1, Bounds::kFar};
    case BinaryOp::kGE: return Bounds{0, Bounds::kFar};
    case BinaryOp::kEQ: return Bounds{0, 0};
    default: return std::nullopt;
  }
}

std::optional<bool> Indices::decide(const Expr& condition) {
  if (const auto* imm = condition.as<IntImm>()) return imm->value != 0;
  const auto* op = condition.as<Binary>();
  const auto holds = op ? where(op->op) : std::nullopt;
  if (!holds) return std::nullopt;
  const auto apart = difference(op->lhs, op->rhs);
  if (!apart) return std::nullopt;
  const Bounds range = bounds(*apart);
  if (range.within(*holds)) return true;
  if (range.high < holds->low || range.low > holds->high) return false;
  return std::nullopt;
}

void Indices::assume(const Expr& condition) {
  const auto* op = condition.as<Binary>();
  const auto holds = op ? where(op->op) : std::nullopt;
  if (!holds) return;
  const auto apart = difference(op->lhs, op->rhs);
  if (!apart || apart->terms.empty() || !is_settled(*apart)) return;
  const Bounds range = *holds + Bounds::of(-apart->constant);
  assumed_.push_back({apart->terms, range});
  auto negated = apart->terms;
  for (auto& term : negated) term.second = -term.second;
  assumed_.push_back({std::move(negated), range * -1});
}

std::optional<int32_t> Indices::access(int32_t view, const Geometry& geometry, DType element,
                                       const std::vector<Expr>& indices, int lanes) {
  if (indices.size() != geometry.shape.size()) return std::nullopt;
  const int64_t size = element.bytes();
  Affine bytes;
  int64_t lane_stride = 0;
  for (size_t d = 0; d < indices.size(); ++d) {
    Expr index = indices[d];
    int64_t reach = 0;  // of the last lane from the first
    if (index->dtype.lanes > 1) {
      const auto* ramp = index.as<Ramp>();
      const auto stride = ramp ? as_int(ramp->stride) : std::nullopt;
      if (!stride || ramp->lanes != lanes || d + 1 != indices.size()) return std::nullopt;
      index = ramp->base;
      reach = *stride * (lanes - 1);
      lane_stride = *stride * geometry.strides[d] * size;
    } else if (lanes > 1 && d + 1 == indices.size()) {
      return std::nullopt;
    }
    const Affine value = affine(index);
    const Bounds range =
        bounds(value) + Bounds{std::min<int64_t>(reach, 0), std::max<int64_t>(reach, 0)};
    if (!range.within({0, geometry.shape[d] - 1})) {
      if (lanes > 1) return std::nullopt;
      Instr check{.op = Op::kCheckIndex, .a = slot(value), .b = static_cast<int32_t>(d), .c = view};
      check.immediate.i = geometry.shape[d];
      emitter_.emit(check);
    }
    bytes = combined(bytes, value, geometry.strides[d] * size);
  }
  Access out{view, constant(0), constant(0), 0, bytes.constant, lane_stride, element};
  if (!bytes.terms.empty()) {
    // The term that varies most is added by the access itself.
    const auto last =
        std::max_element(bytes.terms.begin(), bytes.terms.end(), [&](const auto& a, const auto& b) {
          return static_cast<unsigned>(emitter_.depth_of(a.first)) <
                 static_cast<unsigned>(emitter_.depth_of(b.first));
        });
    out.step = last->first;
    out.factor = last->second;
    bytes.terms.erase(last);
    bytes.constant = 0;
    out.base = slot(bytes);
  }
  code_.accesses.push_back(out);
  return static_cast<int32_t>(code_.accesses.size()) - 1;
}

}  // namespace tenon::interp
