// SPDX-License-Identifier: Apache-2.0
#include "tenon/interp/inner_loop.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <unordered_set>

namespace tenon::interp {

namespace {

// ---- which loops

bool is_float_operation(Op op) {
  return op == Op::kAddF || op == Op::kSubF || op == Op::kMulF || op == Op::kDivF ||
         op == Op::kMinF || op == Op::kMaxF;
}

// The instructions of a loop's body by what they are for.
class Body {
 public:
  Body(const Code& code, size_t begin, size_t end, int32_t counter)
      : code_(code), begin_(begin), end_(end), counter_(counter) {}

  std::optional<InnerLoop> form() const {
    InnerLoop loop;
    loop.counter = counter_;
    const size_t count = end_ - begin_;
    const Instr& last = at(count - 1);
    if (count == 1 && last.op == Op::kAccumulate) {
      loop.form = InnerLoop::Form::kAccumulate;
      loop.is_fused = last.code == 1;
      loop.to = {last.a};
      loop.x = {last.b};
      loop.y = {last.c};
    } else if (count == 2 && is_move(at(0), last)) {
      loop.form = InnerLoop::Form::kCopy;
      loop.to = {last.a};
      loop.x = {at(0).a};
    } else if (count >= 2 && count <= 4 && last.op == Op::kStoreF &&
               is_float_operation(at(count - 2).op) && at(count - 2).dst == last.dst) {
      loop.form = InnerLoop::Form::kCombine;
      loop.op = at(count - 2).op;
      loop.to = {last.a};
      const auto x = operand(at(count - 2).a, count - 2), y = operand(at(count - 2).b, count - 2);
      if (!x || !y) return std::nullopt;
      loop.x = *x;
      loop.y = *y;
    } else {
      return std::nullopt;
    }
    for (const InnerLoop::Operand& operand : {loop.to, loop.x, loop.y})
      if (operand.access >= 0 && !is_even(code_.accesses[static_cast<size_t>(operand.access)]))
        return std::nullopt;
    return loop;
  }

 private:
  const Instr& at(size_t i) const { return code_.instrs[begin_ + i]; }

  bool is_move(const Instr& load, const Instr& store) const {
    if (load.dst != store.dst) return false;
    if (load.op == Op::kLoadF) return store.op == Op::kStoreF;
    // `a` is an access in loads and stores only.
    if ((load.op != Op::kLoadI64 && load.op != Op::kLoadI32) || store.op != Op::kStoreAt)
      return false;
    const auto element = [&](const Instr& instr) {
      return code_.accesses[static_cast<size_t>(instr.a)].element;
    };
    return element(load) == element(store);
  }

  // What the first `count` instructions load into the slot, or a value from outside of the loop.
  std::optional<InnerLoop::Operand> operand(int32_t slot, size_t count) const {
    for (size_t i = 0; i < count; ++i) {
      if (at(i).op != Op::kLoadF) return std::nullopt;
      if (at(i).dst == slot) return InnerLoop::Operand{at(i).a};
    }
    return slot == counter_ ? std::nullopt : std::optional(InnerLoop::Operand{-1, slot});
  }

  // Moves by the same number of bytes in each iteration.
  bool is_even(const Access& access) const {
    for (size_t i = 0; i + 1 < end_ - begin_; ++i)
      if (at(i).dst == access.base || at(i).dst == access.step) return false;
    return true;
  }

  const Code& code_;
  size_t begin_, end_;
  int32_t counter_;
};

// ---- running one

// Stands for what is not watched: all of it is written.
constexpr uint8_t kWritten = 1;

/// A place in memory that moves from one iteration to the next.
struct Cursor {
  std::byte* at = nullptr;
  int64_t stride = 0;
  const uint8_t* written = &kWritten;  // of its first byte
  int64_t written_stride = 0;

  bool is_written() const { return *written != 0; }
  void next() {
    at += stride;
    written += written_stride;
  }
  template <typename T>
  T get() const {
    T value;
    std::memcpy(&value, at, sizeof(T));
    return value;
  }
  // Whether one of `n` elements from here on shares a byte with the 8 bytes at `place`.
  bool meets(const std::byte* place, int64_t n) const {
    constexpr int64_t kWidest = 8;
    const std::byte *first = at, *last = at + stride * (n - 1);
    if (stride < 0) std::swap(first, last);
    return first < place + kWidest && place < last + kWidest;
  }
};

struct Target : Cursor {
  uint8_t* marks = nullptr;  // null: not watched

  template <typename T>
  void put(T value) const {
    std::memcpy(at, &value, sizeof(T));
    if (marks) std::memset(marks, 1, sizeof(T));
  }
  void next() {
    Cursor::next();
    if (marks) marks += stride;
  }
};

class Run {
 public:
  Run(const Code& code, const InnerLoop& loop, const Base* bases, const Slot* slots, int64_t most)
      : code_(code), loop_(loop), bases_(bases), slots_(slots), most_(most) {}

  int64_t run() {
    if (!open(loop_.to, to_) || !bases_[view_of(loop_.to)].store || !open(loop_.x, x_)) return 0;
    if (Base base = bases_[view_of(loop_.to)]; base.written)
      to_.marks = base.written + (to_.at - base.load);
    if (loop_.form == InnerLoop::Form::kCopy) {
      const bool wide = code_.accesses[static_cast<size_t>(loop_.x.access)].element.bits == 64;
      return wide ? copy<int64_t>() : copy<int32_t>();
    }
    if (!open(loop_.y, y_)) return 0;
    if (loop_.form == InnerLoop::Form::kAccumulate)
      return loop_.is_fused
                 ? accumulate([](float sum, float a, float b) { return std::fma(a, b, sum); })
                 : accumulate([](float sum, float a, float b) { return sum + a * b; });
    switch (loop_.op) {
      case Op::kAddF: return combine([](float a, float b) { return a + b; });
      case Op::kSubF: return combine([](float a, float b) { return a - b; });
      case Op::kMulF: return combine([](float a, float b) { return a * b; });
      case Op::kDivF: return combine([](float a, float b) { return a / b; });
      case Op::kMinF:
        return combine([](float a, float b) {
          return std::isnan(a) ? a : std::isnan(b) ? b : b < a ? b : a;
        });
      default:
        return combine([](float a, float b) {
          return std::isnan(a) ? a : std::isnan(b) ? b : a < b ? b : a;
        });
    }
  }

 private:
  size_t view_of(const InnerLoop::Operand& operand) const {
    return static_cast<size_t>(code_.accesses[static_cast<size_t>(operand.access)].view);
  }

  // False where its memory may end, or may not be written, before the view does.
  bool open(const InnerLoop::Operand& operand, Cursor& cursor) {
    if (operand.access < 0) {
      float& value = &operand == &loop_.x ? value_x_ : value_y_;
      value = static_cast<float>(slots_[operand.slot].f);
      cursor.at = reinterpret_cast<std::byte*>(&value);
      return true;
    }
    const Access& access = code_.accesses[static_cast<size_t>(operand.access)];
    const Base& base = bases_[access.view];
    if (!base.load) return false;
    const int64_t offset =
        slots_[access.base].i + slots_[access.step].i * access.factor + access.offset;
    cursor.at = base.load + offset;
    cursor.stride =
        (access.base == loop_.counter ? 1 : 0) + (access.step == loop_.counter ? access.factor : 0);
    if (base.written) {
      cursor.written = base.written + offset;
      cursor.written_stride = cursor.stride;
    }
    return true;
  }

  template <typename T>
  int64_t copy() {
    int64_t done = 0;
    for (; done < most_ && x_.is_written(); ++done, x_.next(), to_.next())
      to_.put(x_.template get<T>());
    return done;
  }

  // A result that stays in its place is kept out of memory until the end, where nobody reads it.
  bool stays() const { return to_.stride == 0; }

  template <typename Step>
  int64_t accumulate(const Step& step) {
    int64_t done = 0;
    if (stays() && !x_.meets(to_.at, most_) && !y_.meets(to_.at, most_)) {
      if (!to_.is_written()) return 0;
      float sum = to_.get<float>();
      for (; done < most_ && x_.is_written() && y_.is_written(); ++done, x_.next(), y_.next())
        sum = step(sum, x_.get<float>(), y_.get<float>());
      if (done > 0) to_.put(sum);
      return done;
    }
    for (; done < most_ && to_.is_written() && x_.is_written() && y_.is_written(); ++done) {
      to_.put(step(to_.get<float>(), x_.get<float>(), y_.get<float>()));
      to_.next(), x_.next(), y_.next();
    }
    return done;
  }

  template <typename Apply>
  int64_t combine(const Apply& apply) {
    const bool from_x = stays() && x_.at == to_.at && x_.stride == 0 && !y_.meets(to_.at, most_);
    const bool from_y = stays() && y_.at == to_.at && y_.stride == 0 && !x_.meets(to_.at, most_);
    if (from_x) return reduce(y_, [&](float sum, float y) { return apply(sum, y); });
    if (from_y) return reduce(x_, [&](float sum, float x) { return apply(x, sum); });
    int64_t done = 0;
    for (; done < most_ && x_.is_written() && y_.is_written(); ++done) {
      to_.put(apply(x_.get<float>(), y_.get<float>()));
      to_.next(), x_.next(), y_.next();
    }
    return done;
  }
  template <typename Step>
  int64_t reduce(Cursor& each, const Step& step) {
    if (!to_.is_written()) return 0;
    int64_t done = 0;
    float sum = to_.get<float>();
    for (; done < most_ && each.is_written(); ++done, each.next())
      sum = step(sum, each.get<float>());
    if (done > 0) to_.put(sum);
    return done;
  }

  const Code& code_;
  const InnerLoop& loop_;
  const Base* bases_;
  const Slot* slots_;
  const int64_t most_;
  Target to_;
  Cursor x_, y_;
  float value_x_ = 0, value_y_ = 0;  // operands that are no elements
};

}  // namespace

void find_inner_loops(Code& code) {
  for (size_t end = 1; end < code.instrs.size(); ++end) {
    const Instr& next = code.instrs[end];
    if (next.op != Op::kNext || next.c < 1) continue;
    const auto begin = static_cast<size_t>(next.c);
    Instr& enter = code.instrs[begin - 1];
    if (begin >= end || enter.op != Op::kJumpIfGE || enter.a != next.a || enter.b != next.b ||
        enter.c != static_cast<int32_t>(end) + 1)
      continue;
    auto loop = Body(code, begin, end, next.a).form();
    if (!loop) continue;
    loop->length = static_cast<int64_t>(end - begin) + 1;
    enter.op = Op::kInnerLoop;
    enter.dst = static_cast<int32_t>(code.inner_loops.size());
    code.inner_loops.push_back(*loop);
  }
}

int64_t run_inner_loop(const Code& code, const InnerLoop& loop, const Base* bases,
                       const Slot* slots, int64_t most) {
  return Run(code, loop, bases, slots, most).run();
}

}  // namespace tenon::interp
