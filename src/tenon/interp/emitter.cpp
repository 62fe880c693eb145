// SPDX-License-Identifier: Apache-2.0
#include "tenon/interp/emitter.h"

#include <algorithm>

namespace tenon::interp {

// Slots: constants, then values that are kept for whole loops, then those of statements. What does
// not fit the first two is treated like the third.
static constexpr int32_t kConstants = 256, kKept = 1 << 15;

static int64_t clamped(__int128 value) {
  if (value < -Bounds::kFar) return -Bounds::kFar;
  return value > Bounds::kFar ? Bounds::kFar : static_cast<int64_t>(value);
}

Bounds Bounds::of(DType dtype) {
  if (dtype.is_bool()) return {0, 1};
  if (!dtype.is_integer() || dtype.bits >= 62) return {};
  if (dtype.is_uint()) return {0, (int64_t{1} << dtype.bits) - 1};
  return {-(int64_t{1} << (dtype.bits - 1)), (int64_t{1} << (dtype.bits - 1)) - 1};
}

Bounds operator+(const Bounds& a, const Bounds& b) {
  const auto end = [](int64_t x, int64_t y, int64_t far) {
    return x == far || y == far ? far : clamped(static_cast<__int128>(x) + y);
  };
  return {end(a.low, b.low, -Bounds::kFar), end(a.high, b.high, Bounds::kFar)};
}

Bounds operator*(const Bounds& a, int64_t factor) {
  if (factor == 0) return Bounds::of(0);
  const int64_t x = clamped(static_cast<__int128>(a.low) * factor),
                y = clamped(static_cast<__int128>(a.high) * factor);
  return {std::min(x, y), std::max(x, y)};
}

Emitter::Emitter(Code& code, bool hoists)
    : code_(code), hoists_(hoists), next_(kConstants + kKept), next_kept_(kConstants) {
  code_.slots = next_;
}

int32_t Emitter::temporary(int lanes) {
  const int32_t slot = next_;
  next_ += lanes;
  code_.slots = std::max(code_.slots, next_);
  for (int32_t i = slot; i < next_; ++i) fact(i) = {};
  return slot;
}

Emitter::Fact& Emitter::fact(int32_t slot) {
  const auto at = static_cast<size_t>(slot);
  if (at >= facts_.size()) facts_.resize(std::max(at + 1, facts_.size() * 2));
  return facts_[at];
}

int32_t Emitter::constant(bool is_float, Slot value) {
  const auto next = static_cast<int32_t>(code_.constants_in_slots.size());
  const auto [it, is_new] = constants_[is_float].try_emplace(static_cast<uint64_t>(value.i),
                                                             next < kConstants ? next : -1);
  if (it->second >= 0 && is_new) {
    code_.constants_in_slots.push_back(value);
    fact(it->second) = {0, is_float ? Bounds() : Bounds::of(value.i)};
  }
  return it->second;
}

int32_t Emitter::definition(const Bounds& bounds) {
  if (!hoists_ || next_kept_ == kConstants + kKept) {
    const int32_t slot = temporary(1);
    fact(slot).bounds = bounds;
    return slot;
  }
  fact(next_kept_) = {depth(), bounds};
  return next_kept_++;
}

int Emitter::depth_of(int32_t slot) const {
  const auto at = static_cast<size_t>(slot);
  return at < facts_.size() ? facts_[at].depth : -1;
}

const Bounds& Emitter::bounds_of(int32_t slot) const {
  static const Bounds kUnknown;
  const auto at = static_cast<size_t>(slot);
  return at < facts_.size() ? facts_[at].bounds : kUnknown;
}

Instr& Emitter::emit(Instr instr) {
  levels_.back().instrs.push_back(instr);
  levels_.back().origins.push_back(origin_);
  return levels_.back().instrs.back();
}

size_t Emitter::KeyHash::operator()(const Key& key) const {
  uint64_t h = key.what;
  for (const uint64_t part : {key.operands, key.more, static_cast<uint64_t>(key.immediate)})
    h = (h ^ part) * 0x9e3779b97f4a7c15ULL, h ^= h >> 29;
  return h;
}

int32_t Emitter::value(Instr instr, std::initializer_list<int32_t> operands, const Bounds& bounds) {
  int deepest = 0;
  bool settled = hoists_;
  for (const int32_t operand : operands) {
    settled = settled && is_settled(operand);
    deepest = std::max(deepest, depth_of(operand));
  }
  if (!settled || next_kept_ + instr.lanes > kConstants + kKept) {
    instr.dst = temporary(instr.lanes);
    fact(instr.dst).bounds = bounds;
    return emit(instr).dst;
  }
  const auto word = [](DType dtype) {
    return static_cast<uint64_t>(dtype.code) << 24 | static_cast<uint64_t>(dtype.bits) << 16 |
           dtype.lanes;
  };
  const Key key{
      static_cast<uint64_t>(instr.op) << 32 | static_cast<uint64_t>(instr.code) << 16 | instr.lanes,
      static_cast<uint64_t>(static_cast<uint32_t>(instr.a)) << 32 | static_cast<uint32_t>(instr.b),
      (word(instr.dtype) << 32 | word(instr.dtype2)) ^
          static_cast<uint64_t>(static_cast<uint32_t>(instr.c)) << 8,
      instr.immediate.i};
  const auto [it, is_new] = known_.try_emplace(key, next_kept_);
  if (!is_new) return it->second;
  known_order_.emplace_back(key, deepest);
  instr.dst = next_kept_;
  next_kept_ += instr.lanes;
  fact(instr.dst) = {deepest, bounds};
  Level& level = levels_[static_cast<size_t>(deepest)];
  level.instrs.push_back(instr);
  level.origins.push_back(origin_);
  return instr.dst;
}

void Emitter::forget(size_t from, int depth) {
  size_t kept = from;
  for (size_t i = from; i < known_order_.size(); ++i) {
    if (known_order_[i].second >= depth)
      known_.erase(known_order_[i].first);
    else
      known_order_[kept++] = known_order_[i];
  }
  known_order_.resize(kept);
}

void Emitter::leave_branch(size_t branch) { forget(branch, depth()); }

void Emitter::open_loop() { levels_.push_back({{}, {}, known_order_.size()}); }

static bool jumps(Op op) {
  return op == Op::kJump || op == Op::kJumpIfZero || op == Op::kJumpIfGE || op == Op::kNext;
}

int32_t Emitter::close_loop() {
  forget(levels_.back().known, depth());
  Level body = std::move(levels_.back());
  levels_.pop_back();
  const int32_t start = here();
  Level& parent = levels_.back();
  for (size_t i = 0; i < body.instrs.size(); ++i) {
    Instr& instr = body.instrs[i];
    if (jumps(instr.op)) instr.c += start;
    parent.instrs.push_back(instr);
    parent.origins.push_back(std::move(body.origins[i]));
  }
  return start;
}

void Emitter::finish() {
  code_.instrs = std::move(levels_.front().instrs);
  code_.origins = std::move(levels_.front().origins);
}

}  // namespace tenon::interp
