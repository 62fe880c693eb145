// SPDX-License-Identifier: Apache-2.0
#include "tenon/interp/steady_loop.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "tenon/interp/scalar.h"

namespace tenon::interp {

namespace {

// ---- what instructions do

bool is_load(const Instr& i) {
  return i.op == Op::kLoadF || i.op == Op::kLoadI64 || i.op == Op::kLoadI32 || i.op == Op::kLoadAt;
}
bool is_store(const Instr& i) { return i.op == Op::kStoreF || i.op == Op::kStoreAt; }
bool is_store_next(const Instr& i) { return i.op == Op::kStoreNextF || i.op == Op::kStoreNext; }
// Fails, or does nothing.
bool is_check(const Instr& i) { return i.op == Op::kCheckIndex || i.op == Op::kAssert; }
bool has_result(const Instr& i) { return !is_store(i) && !is_store_next(i) && !is_check(i); }

// How many of a, b, c are slots that an operation on scalars reads; nothing for what is none.
std::optional<int> operands(const Instr& i) {
  if (i.lanes != 1) return std::nullopt;
  switch (i.op) {
    case Op::kImmediate: return 0;
    case Op::kMove:
    case Op::kNot:
    case Op::kCast:
    case Op::kFunctionF:
    case Op::kDivI:
    case Op::kModI:
    case Op::kAssert:
    case Op::kCheckIndex: return 1;
    case Op::kBinary: return 2;
    case Op::kSelect:
    case Op::kIntrinsic:
    case Op::kFmaLanes: return 3;
    default: break;
  }
  const bool quick = i.op == Op::kMulAdd || (i.op >= Op::kAddI && i.op <= Op::kOrB);
  return quick ? std::optional(2) : std::nullopt;
}
int32_t Instr::* const kOperands[] = {&Instr::a, &Instr::b, &Instr::c};

bool same_place(const Access& a, const Access& b) {
  return a.view == b.view && a.base == b.base && a.step == b.step && a.factor == b.factor &&
         a.offset == b.offset;
}

// ---- the steady form

class Steady {
 public:
  Steady(Code& code, size_t begin, size_t end)
      : code_(code), begin_(begin), end_(end), counter_(code.instrs[end].a) {}

  bool find() {
    if (!number()) return false;
    for (const Step& step : steps_) follow(step);
    for (Step& step : steps_) emit(step);
    const bool gains = body_.size() < end_ - begin_ || !loop_.cursors.empty();
    drop_unused();
    return gains;
  }

  // The body goes behind all other code, and is entered from the loop's end.
  void add() {
    loop_.counter = counter_;
    loop_.body = static_cast<int32_t>(code_.instrs.size());
    loop_.exit = static_cast<int32_t>(end_) + 1;
    for (const Step& step : body_) {
      code_.instrs.push_back(step.instr);
      code_.origins.push_back(code_.origins[step.from]);
    }
    Instr next = code_.instrs[end_];
    next.op = Op::kSteadyNext;
    next.dst = static_cast<int32_t>(code_.steady_loops.size());
    next.c = loop_.body;
    code_.instrs.push_back(next);
    code_.origins.push_back(code_.origins[end_]);
    code_.instrs[end_].op = Op::kNextSteady;
    code_.instrs[end_].dst = next.dst;
    code_.cursors = std::max(code_.cursors, loop_.cursors.size());
    code_.steady_loops.push_back(std::move(loop_));
  }

 private:
  struct Step {
    Instr instr;
    size_t from;
    bool lasts;  // its result is still in its slot when the next iteration begins
  };

  Access& access_of(const Instr& instr) { return code_.accesses[static_cast<size_t>(instr.a)]; }

  // Every value gets a slot that nothing else is written to, and is computed once. False where an
  // instruction is not for steady loops.
  bool number() {
    std::unordered_map<int32_t, int> writes;
    for (size_t i = begin_; i < end_; ++i) {
      const Instr& instr = code_.instrs[i];
      if (!is_load(instr) && !is_store(instr) && !operands(instr)) return false;
      if (has_result(instr)) ++writes[instr.dst];
    }
    std::unordered_map<int32_t, int32_t> slots;  // by what they are called in the code
    const auto rename = [&](int32_t& slot) {
      const auto found = slots.find(slot);
      if (found != slots.end()) slot = found->second;
      return found != slots.end() || writes.count(slot) == 0;  // not from the iteration before
    };
    size_t last_store = 0;
    for (size_t i = begin_; i < end_; ++i) {
      Instr instr = code_.instrs[i];
      bool known = true;
      if (is_load(instr) || is_store(instr)) {
        Access access = access_of(instr);
        known = rename(access.base) && rename(access.step);
        if (!same_place(access, access_of(instr))) {
          instr.a = static_cast<int32_t>(code_.accesses.size());
          code_.accesses.push_back(access);
        }
        if (is_store(instr)) known = known && rename(instr.dst), last_store = steps_.size();
      } else {
        for (int k = 0; k < *operands(instr); ++k) known = known && rename(instr.*kOperands[k]);
      }
      if (!known) return false;
      if (!has_result(instr)) {
        steps_.push_back({instr, i, false});
        continue;
      }
      const int32_t called = instr.dst;
      const auto first = is_load(instr) ? last_store : 0;
      const auto same =
          std::find_if(steps_.begin() + static_cast<std::ptrdiff_t>(first), steps_.end(),
                       [&](const Step& step) { return computes_same(step.instr, instr); });
      if (same != steps_.end()) {
        slots[called] = same->instr.dst;
        continue;
      }
      if (writes[called] > 1) instr.dst = code_.slots++;
      slots[called] = instr.dst;
      steps_.push_back({instr, i, writes[called] == 1});
    }
    return true;
  }

  bool computes_same(const Instr& a, const Instr& b) {
    if (a.op != b.op || is_store(a) || is_check(a)) return false;
    if (is_load(a)) return same_place(access_of(a), access_of(b));
    for (int k = 0; k < *operands(a); ++k)
      if (a.*kOperands[k] != b.*kOperands[k]) return false;
    return a.code == b.code && a.dtype == b.dtype && a.dtype2 == b.dtype2 &&
           a.immediate.i == b.immediate.i;
  }

  // By how much an integer grows from one iteration to the next; 0 is for any value that stays as
  // it is, and nothing where that is not known.
  using Growth = std::optional<int64_t>;
  Growth growth(int32_t slot) const {
    if (slot == counter_) return 1;
    const auto found = growth_.find(slot);
    return found == growth_.end() ? Growth(0) : found->second;
  }
  Growth stride(const Access& access) const {  // in bytes
    const Growth base = growth(access.base), step = growth(access.step);
    return base && step ? Growth(*base + *step * access.factor) : std::nullopt;
  }

  void follow(const Step& step) {
    const Instr& instr = step.instr;
    if (!has_result(instr)) return;
    Growth& grows = growth_[instr.dst];
    if (!step.lasts) return;
    if (is_load(instr)) {
      if (stride(access_of(instr)) == 0 && !is_stored(access_of(instr))) grows = 0;
      return;
    }
    const Growth a = growth(instr.a), b = growth(instr.b);
    if (instr.op == Op::kMulAdd && a && b) {
      grows = *a + *b * instr.immediate.i;
    } else if (stays(instr)) {
      grows = 0;
    }
  }
  bool stays(const Instr& instr) const {
    for (int k = 0; k < *operands(instr); ++k)
      if (growth(instr.*kOperands[k]) != 0) return false;
    return true;
  }
  bool is_stored(const Access& access) {
    return std::any_of(steps_.begin(), steps_.end(), [&](const Step& step) {
      return is_store(step.instr) && same_place(access_of(step.instr), access);
    });
  }

  void emit(Step& step) {
    Instr& instr = step.instr;
    if (is_load(instr)) return load(step);
    if (is_store(instr)) return store(step);
    if (stays(instr) && (is_check(instr) || growth(instr.dst) == 0)) return;
    for (int k = 0; k < *operands(instr); ++k) rename(instr.*kOperands[k]);
    body_.push_back(step);
  }

  void load(Step& step) {
    Instr& instr = step.instr;
    const Access& access = access_of(instr);
    const Instr& last = steps_.back().instr;
    if (growth(instr.dst) == 0) {
      loop_.kept.push_back(instr.a);
    } else if (is_store(last) && stride(access) == 0 && same_place(access_of(last), access)) {
      result_[instr.dst] = result_slot(last);
    } else if (const Growth bytes = stride(access)) {
      move(step, *bytes, instr.op == Op::kLoadF ? Op::kLoadNextF : Op::kLoadNext);
    } else {
      scatter(step);
    }
  }

  void store(Step& step) {
    Instr& instr = step.instr;
    rename(instr.dst);
    const Growth bytes = stride(access_of(instr));
    if (bytes == 0 && &step == &steps_.back()) {
      const int32_t slot = result_slot(instr);
      if (!body_.empty() && has_result(body_.back().instr) && body_.back().instr.dst == instr.dst)
        body_.back().instr.dst = slot;
      else
        body_.push_back({{.op = Op::kMove, .dst = slot, .a = instr.dst}, step.from, false});
    } else if (bytes) {
      move(step, *bytes, instr.op == Op::kStoreF ? Op::kStoreNextF : Op::kStoreNext);
    } else {
      scatter(step);
    }
  }

  void scatter(Step& step) {
    Access access = access_of(step.instr);
    rename(access.base);
    rename(access.step);
    if (!same_place(access, access_of(step.instr))) {
      step.instr.a = static_cast<int32_t>(code_.accesses.size());
      code_.accesses.push_back(access);
    }
    loop_.scattered.push_back({step.instr.a, is_store(step.instr)});
    body_.push_back(step);
  }

  void move(Step& step, int64_t bytes, Op op) {
    loop_.cursors.push_back({step.instr.a, bytes, is_store(step.instr)});
    step.instr.op = op;
    step.instr.b = step.instr.a;  // for the message
    step.instr.dtype = access_of(step.instr).element;
    step.instr.a = static_cast<int32_t>(loop_.cursors.size()) - 1;
    body_.push_back(step);
  }

  // What the last instruction stores in the same place in every iteration.
  int32_t result_slot(const Instr& store) {
    if (loop_.result < 0) {
      loop_.result = store.a;
      loop_.result_slot = code_.slots++;
    }
    return loop_.result_slot;
  }
  void rename(int32_t& slot) const {
    if (const auto found = result_.find(slot); found != result_.end()) slot = found->second;
  }

  // Values that only the places of elements needed.
  void drop_unused() {
    std::unordered_set<int32_t> used = {loop_.result_slot};
    for (const auto& [access, stores] : loop_.scattered) {
      used.insert(code_.accesses[static_cast<size_t>(access)].base);
      used.insert(code_.accesses[static_cast<size_t>(access)].step);
    }
    std::vector<Step> kept;
    for (size_t i = body_.size(); i-- > 0;) {
      const Instr& instr = body_[i].instr;
      const auto count = operands(instr);
      if (count && has_result(instr) && may_be_dropped(instr) && used.count(instr.dst) == 0)
        continue;
      if (!count) used.insert(instr.dst);  // what is stored
      for (int k = 0; count && k < *count; ++k) used.insert(instr.*kOperands[k]);
      kept.push_back(body_[i]);
    }
    std::reverse(kept.begin(), kept.end());
    body_ = std::move(kept);
  }
  // Divisions and intrinsics may fail.
  static bool may_be_dropped(const Instr& instr) {
    return instr.op != Op::kBinary && instr.op != Op::kIntrinsic;
  }

  Code& code_;
  const size_t begin_, end_;
  const int32_t counter_;
  std::vector<Step> steps_, body_;
  std::unordered_map<int32_t, Growth> growth_;   // of what the body writes
  std::unordered_map<int32_t, int32_t> result_;  // slots that hold the result so far
  SteadyLoop loop_;
};

// ---- running one

/// The bytes that an access touches.
struct Reach {
  const std::byte *begin, *end;

  /// \param way  from the first element to the last
  Reach(const std::byte* first, int64_t way, int64_t size)
      : begin(first + std::min<int64_t>(way, 0)), end(first + std::max<int64_t>(way, 0) + size) {}
  bool meets(const Reach& other) const { return begin < other.end && other.begin < end; }
};

class Opening {
 public:
  Opening(const Code& code, const SteadyLoop& loop, Machine::Frame& frame, int64_t left)
      : code_(code), loop_(loop), frame_(frame), left_(left) {}

  bool run() {
    for (size_t i = 0; i < loop_.cursors.size(); ++i)
      if (!open(loop_.cursors[i], frame_.cursors[i])) return false;
    if (loop_.result >= 0 && !open_result()) return false;
    return std::all_of(loop_.kept.begin(), loop_.kept.end(),
                       [&](int32_t access) { return is_never_stored(access); });
  }

 private:
  const Access& access(int32_t index) const { return code_.accesses[static_cast<size_t>(index)]; }
  const Base& base_of(int32_t index) const {
    return frame_.bases[static_cast<size_t>(access(index).view)];
  }
  const Memory* memory_of(int32_t index) const {
    return frame_.views[static_cast<size_t>(access(index).view)].memory.get();
  }
  Reach element(int32_t index) const {
    const std::byte* first = base_of(index).load + offset_of(access(index), frame_.slots);
    return {first, 0, access(index).element.bytes()};
  }
  // From the iteration that is done on: what it stores it may have loaded before.
  Reach reach(size_t cursor) const {
    const int64_t size = access(loop_.cursors[cursor].access).element.bytes(),
                  stride = loop_.cursors[cursor].stride;
    return {frame_.cursors[cursor].at - stride, stride * left_, size};
  }

  bool open(const SteadyLoop::Cursor& from, Cursor& to) const {
    const Base& base = base_of(from.access);
    if (!base.load || (from.stores && !base.store)) return false;
    const int64_t offset = offset_of(access(from.access), frame_.slots) + from.stride;
    to.at = base.load + offset;
    to.stride = from.stride;
    to.written = base.written ? base.written + offset : nullptr;
    return true;
  }

  bool open_result() const {
    if (!base_of(loop_.result).store) return false;
    const Reach result = element(loop_.result);
    for (size_t i = 0; i < loop_.cursors.size(); ++i)
      if (reach(i).meets(result)) return false;
    for (const SteadyLoop::Scattered& other : loop_.scattered)
      if (memory_of(other.access) == memory_of(loop_.result)) return false;
    frame_.slots[loop_.result_slot] = read_element(access(loop_.result).element, result.begin);
    return true;
  }

  bool is_never_stored(int32_t kept) const {
    if (!base_of(kept).load) return false;
    const Reach own = element(kept);
    for (size_t i = 0; i < loop_.cursors.size(); ++i)
      if (loop_.cursors[i].stores && reach(i).meets(own)) return false;
    for (const SteadyLoop::Scattered& other : loop_.scattered)
      if (other.stores && memory_of(other.access) == memory_of(kept)) return false;
    return loop_.result < 0 || !element(loop_.result).meets(own);
  }

  const Code& code_;
  const SteadyLoop& loop_;
  Machine::Frame& frame_;
  const int64_t left_;
};

}  // namespace

void find_steady_loops(Code& code) {
  for (size_t end = 1, all = code.instrs.size(); end < all; ++end) {
    const Instr& next = code.instrs[end];
    if (next.op != Op::kNext || next.c < 1 || static_cast<size_t>(next.c) >= end) continue;
    if (code.instrs[static_cast<size_t>(next.c) - 1].op == Op::kInnerLoop) continue;
    Steady steady(code, static_cast<size_t>(next.c), end);
    if (steady.find()) steady.add();
  }
}

bool open_cursors(const Code& code, const SteadyLoop& loop, Machine::Frame& frame, int64_t left) {
  return Opening(code, loop, frame, left).run();
}

}  // namespace tenon::interp
