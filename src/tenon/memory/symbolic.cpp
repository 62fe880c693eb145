// SPDX-License-Identifier: Apache-2.0
#include "tenon/memory/symbolic.h"

#include <algorithm>
#include <numeric>

#include "tenon/ir/visit.h"
#include "tenon/support/diagnostics.h"

namespace tenon::memory {

/// `expr` as a constant and what it multiplies (null: 1).
static std::pair<int64_t, Expr> split_factor(const Expr& expr) {
  if (const auto value = as_int(expr)) return {*value, Expr()};
  const auto* product = expr.as<Binary>();
  if (product == nullptr || product->op != BinaryOp::kMul) return {1, expr};
  const auto [a, rest_a] = split_factor(product->lhs);
  const auto [b, rest_b] = split_factor(product->rhs);
  int64_t factor = 0;
  if (__builtin_mul_overflow(a, b, &factor) || a < 0 || b < 0) return {1, expr};
  if (!rest_a) return {factor, rest_b};
  if (!rest_b) return {factor, rest_a};
  return {factor, rest_a * rest_b};
}

bool proves_less_equal_by_structure(const Expr& a, const Expr& b) {
  if (structural_equal(a, b)) return true;
  const auto [factor_a, rest_a] = split_factor(a);
  const auto [factor_b, rest_b] = split_factor(b);
  if (factor_a > factor_b) return false;
  if (!rest_a || !rest_b) return !rest_a && !rest_b;
  return structural_equal(rest_a, rest_b);  // sizes are >= 0, and so is the rest
}

/// A constant that divides every value of `expr`; 1 where none is known.
static int64_t known_divisor(const Expr& expr) {
  if (const auto value = as_int(expr)) return *value;
  const auto* op = expr.as<Binary>();
  if (op == nullptr) return 1;
  const int64_t a = known_divisor(op->lhs), b = known_divisor(op->rhs);
  switch (op->op) {
    case BinaryOp::kMul: {
      int64_t product = 0;
      return __builtin_mul_overflow(a, b, &product) ? 1 : product;
    }
    case BinaryOp::kAdd:
    case BinaryOp::kSub:
    case BinaryOp::kMin:
    case BinaryOp::kMax: return std::gcd(a, b);
    default: return 1;
  }
}

static Expr align_up(const Expr& bytes, int64_t alignment) {
  if (known_divisor(bytes) % alignment == 0) return bytes;
  return ceildiv(bytes, int64(alignment)) * alignment;
}

namespace {

/// Memory that buffers use one after another.
struct Slot {
  std::vector<Expr> sizes;  // of the members; none is provably below another
  int64_t free_from = 0;    // the step at which its last member is dead
};

/// Balanced, so that a slot of thousands does not nest thousands deep.
Expr greatest(std::span<const Expr> sizes) {
  if (sizes.size() == 1) return sizes[0];
  const size_t half = sizes.size() / 2;
  return max(greatest(sizes.first(half)), greatest(sizes.subspan(half)));
}

/// Writes begin, begin + sizes[0], ... to `offsets`, and gives the sum. Balanced likewise.
Expr running_sum(std::span<const Expr> sizes, const Expr& begin, std::span<Expr> offsets) {
  if (sizes.size() == 1) {
    offsets[0] = begin;
    return sizes[0];
  }
  const size_t half = sizes.size() / 2;
  const Expr left = running_sum(sizes.first(half), begin, offsets.first(half));
  const Expr right = running_sum(sizes.subspan(half), begin + left, offsets.subspan(half));
  return left + right;
}

class SlotAssignment {
 public:
  explicit SlotAssignment(const ProvesLessEqual& proves) : proves_(proves) {}

  /// Buffers come in the order of their first steps.
  size_t assign(const Expr& bytes, int64_t lower, int64_t upper) {
    const size_t chosen = choose(bytes, lower);
    Slot& slot = slots_[chosen];
    slot.free_from = upper;
    const auto below = [&](const Expr& a, const Expr& b) { return proves_(a, b); };
    if (std::any_of(slot.sizes.begin(), slot.sizes.end(),
                    [&](const Expr& size) { return below(bytes, size); }))
      return chosen;
    std::erase_if(slot.sizes, [&](const Expr& size) { return below(size, bytes); });
    slot.sizes.push_back(bytes);
    return chosen;
  }

  const std::vector<Slot>& slots() const { return slots_; }

 private:
  size_t choose(const Expr& bytes, int64_t lower) {
    const size_t none = slots_.size();
    size_t large_enough = none, smaller = none, any = none;
    for (size_t s = 0; s < slots_.size(); ++s) {
      const Slot& slot = slots_[s];
      if (slot.free_from > lower) continue;
      any = std::min(any, s);
      const bool covers = std::any_of(slot.sizes.begin(), slot.sizes.end(),
                                      [&](const Expr& size) { return proves_(bytes, size); });
      const bool is_covered = std::all_of(slot.sizes.begin(), slot.sizes.end(),
                                          [&](const Expr& size) { return proves_(size, bytes); });
      if (covers && is_covered) return s;
      if (covers) {
        // The tightest: one that is provably within the one found before.
        if (large_enough == none || is_within(slot, slots_[large_enough])) large_enough = s;
      } else if (is_covered) {
        if (smaller == none || is_within(slots_[smaller], slot)) smaller = s;
      }
    }
    if (large_enough != none) return large_enough;
    if (smaller != none) return smaller;
    if (any != none) return any;  // max(a, b) is never more than a + b
    slots_.emplace_back();
    return none;
  }

  bool is_within(const Slot& inner, const Slot& outer) const {
    return std::all_of(inner.sizes.begin(), inner.sizes.end(), [&](const Expr& a) {
      return std::any_of(outer.sizes.begin(), outer.sizes.end(),
                         [&](const Expr& b) { return proves_(a, b); });
    });
  }

  const ProvesLessEqual& proves_;
  std::vector<Slot> slots_;
};

}  // namespace

static Expr checked_bytes(const SymbolicAllocation& buffer) {
  if (!buffer.bytes || !buffer.bytes->dtype.is_integer() || !buffer.bytes->dtype.is_scalar())
    throw CompileError(kBadProblem, buffer.origin, "the size of buffer `{}` is no integer scalar",
                       buffer.name);
  return cast(kInt64, buffer.bytes);
}

SymbolicPlan plan_symbolic(const std::vector<SymbolicAllocation>& buffers,
                           const SymbolicOptions& options) {
  Problem all;  // symbolic sizes as 0: what else can be wrong is checked alike
  Problem constants;
  std::vector<Expr> sizes;
  std::vector<size_t> constant, symbolic;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const SymbolicAllocation& b = buffers[i];
    sizes.push_back(checked_bytes(b));
    const auto bytes = as_int(sizes.back());
    all.buffers.push_back({b.name, bytes.value_or(0), b.alignment, b.lower, b.upper, 0, b.origin});
    if (bytes) constants.buffers.push_back(all.buffers.back());
    (bytes ? constant : symbolic).push_back(i);
  }
  validate(all);

  SymbolicPlan result;
  result.offsets.resize(buffers.size());
  result.constants = plan(constants, options.constants);
  result.constant_bytes = result.constants.pools[0].peak;
  result.total = int64(result.constant_bytes);
  for (size_t k = 0; k < constant.size(); ++k)
    result.offsets[constant[k]] = int64(result.constants.offsets[k]);
  if (symbolic.empty()) return result;

  // All slots get one alignment: whatever the sizes below it come to, the next is aligned too.
  int64_t alignment = 1;
  for (const size_t i : symbolic) alignment = std::max(alignment, buffers[i].alignment);
  std::sort(symbolic.begin(), symbolic.end(), [&](size_t a, size_t b) {
    return std::tuple(buffers[a].lower, -buffers[a].upper, a) <
           std::tuple(buffers[b].lower, -buffers[b].upper, b);
  });
  SlotAssignment assignment(options.proves_less_equal);
  std::vector<size_t> slot_of(buffers.size());
  for (const size_t i : symbolic)
    slot_of[i] = assignment.assign(sizes[i], buffers[i].lower, buffers[i].upper);

  result.slots = assignment.slots().size();
  std::vector<Expr> slot_bytes, slot_offsets(result.slots);
  for (const Slot& slot : assignment.slots())
    slot_bytes.push_back(align_up(greatest(slot.sizes), alignment));
  const Expr begin = int64(memory::align_up(result.constant_bytes, alignment));
  result.total = begin + running_sum(slot_bytes, begin, slot_offsets);
  for (const size_t i : symbolic) result.offsets[i] = slot_offsets[slot_of[i]];
  return result;
}

}  // namespace tenon::memory
