// SPDX-License-Identifier: Apache-2.0
// The dispatch loop of the machine, in which programs spend most of their time.
#include <cmath>
#include <cstring>

#include "tenon/interp/frame.h"
#include "tenon/interp/inner_loop.h"
#include "tenon/interp/scalar.h"
#include "tenon/interp/steady_loop.h"

namespace tenon::interp {

namespace {

void check_memory(const View& view, int64_t at, int64_t bytes, const Origin& origin) {
  if (at < 0 || at + bytes > static_cast<int64_t>(view.memory->bytes.size()))
    throw CompileError(kOutOfBounds, origin,
                       "an access of {} bytes at byte {} of `{}`, which has {} bytes", bytes, at,
                       view.memory->name, view.memory->bytes.size());
}

// What is wrong with a load that did not go quickly, or the element after all.
Slot slow_load(const View& view, const Access& access, int64_t offset, const Origin& origin) {
  const int64_t at = view.offset + offset, bytes = access.element.bytes();
  check_memory(view, at, bytes, origin);
  const Memory& memory = *view.memory;
  if (!memory.written.empty() && !memory.written[static_cast<size_t>(at)]) {
    std::string where;
    int64_t rest = offset / std::max<int64_t>(1, bytes);
    for (size_t d = 0; d < view.shape.size(); ++d) {
      const int64_t stride = std::max<int64_t>(1, view.strides[d]);
      where += fmt::format("{}{}", d ? ", " : "", rest / stride);
      rest %= stride;
    }
    throw CompileError(kUninitialisedRead, origin,
                       "element ({}) of buffer `{}` is read before it is written", where,
                       view.buffer ? view.buffer->name : memory.name);
  }
  return read_element(access.element, memory.bytes.data() + at);
}

void slow_store(const View& view, const Access& access, int64_t offset, Slot value,
                const Origin& origin) {
  const int64_t at = view.offset + offset, bytes = access.element.bytes();
  Memory& memory = *view.memory;
  if (memory.read_only)
    throw CompileError(kRunFailed, origin, "constant buffer `{}` is written",
                       view.buffer ? view.buffer->name : "?");
  check_memory(view, at, bytes, origin);
  write_element(access.element, memory.bytes.data() + at, value);
  if (!memory.written.empty()) std::fill_n(memory.written.begin() + at, bytes, uint8_t{1});
}

template <typename T>
inline T get(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}
template <typename T>
inline void put(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof(T));
}

inline double least(double a, double b) {
  return std::isnan(a) ? a : std::isnan(b) ? b : b < a ? b : a;
}
inline double greatest(double a, double b) {
  return std::isnan(a) ? a : std::isnan(b) ? b : a < b ? b : a;
}

// To 32 bits; what two of these give fits in 64.
inline int64_t wrapped(int64_t value) { return static_cast<int32_t>(value); }

void binary_lanes(BinaryOp op, Slot* to, const Slot* a, const Slot* b, int lanes) {
  const auto each = [&](auto&& apply) {
    for (int k = 0; k < lanes; ++k) to[k].f = apply(a[k].f, b[k].f);
  };
  switch (op) {
    case BinaryOp::kAdd: return each([](double x, double y) { return static_cast<float>(x + y); });
    case BinaryOp::kSub: return each([](double x, double y) { return static_cast<float>(x - y); });
    case BinaryOp::kMul: return each([](double x, double y) { return static_cast<float>(x * y); });
    case BinaryOp::kDiv: return each([](double x, double y) { return static_cast<float>(x / y); });
    case BinaryOp::kMin: return each(least);
    case BinaryOp::kMax: return each(greatest);
    default: unreachable("no operation of lanes");
  }
}

// The accesses of one frame's instructions.
class Memories {
 public:
  Memories(const Code& code, const std::vector<View>& views, const Base* bases, Slot* slots)
      : code_(code), accesses_(code.accesses.data()), views_(views), bases_(bases), slots_(slots) {}

  template <typename T>
  T load(int32_t index, const Instr& instr) const {
    const Access& access = accesses_[index];
    const int64_t offset = offset_of(access, slots_);
    const Base& base = bases_[access.view];
    if (base.load && (!base.written || base.written[offset])) [[likely]]
      return get<T>(base.load + offset);
    const Slot value = slow_load(view(access), access, offset, origin(instr));
    if constexpr (std::is_same_v<T, float>)
      return static_cast<float>(value.f);
    else
      return static_cast<T>(value.i);
  }

  template <typename T>
  void store(int32_t index, T value, const Instr& instr) const {
    const Access& access = accesses_[index];
    const int64_t offset = offset_of(access, slots_);
    const Base& base = bases_[access.view];
    if (!base.store) [[unlikely]] {
      Slot slot;
      if constexpr (std::is_same_v<T, float>)
        slot.f = value;
      else
        slot.i = value;
      return slow_store(view(access), access, offset, slot, origin(instr));
    }
    put(base.store + offset, value);
    if (base.written) std::memset(base.written + offset, 1, sizeof(T));
  }

  void load_any(int32_t index, Slot& to, const Instr& instr) const {
    const Access& access = accesses_[index];
    const int64_t offset = offset_of(access, slots_);
    const Base& base = bases_[access.view];
    const bool is_there = base.load && (!base.written || base.written[offset]);
    to = is_there ? read_element(access.element, base.load + offset)
                  : slow_load(view(access), access, offset, origin(instr));
  }
  void store_any(int32_t index, Slot value, const Instr& instr) const {
    const Access& access = accesses_[index];
    const int64_t offset = offset_of(access, slots_);
    const Base& base = bases_[access.view];
    if (!base.store) [[unlikely]]
      return slow_store(view(access), access, offset, value, origin(instr));
    write_element(access.element, base.store + offset, value);
    if (base.written)
      std::memset(base.written + offset, 1, static_cast<size_t>(access.element.bytes()));
  }

  /// The element of a cursor is read before it is written.
  [[noreturn]] void fail_at(int32_t index, const std::byte* at, const Instr& instr) const {
    const Access& access = accesses_[index];
    slow_load(view(access), access, at - bases_[access.view].load, origin(instr));
    unreachable("an element that can be read");
  }

  void load_lanes(int32_t index, int lanes, float* to, const Instr& instr) const {
    const Access& access = accesses_[index];
    int64_t offset = offset_of(access, slots_);
    const Base& base = bases_[access.view];
    for (int k = 0; k < lanes; ++k, offset += access.lane_stride) {
      if (base.load && (!base.written || base.written[offset])) [[likely]]
        to[k] = get<float>(base.load + offset);
      else
        to[k] = static_cast<float>(slow_load(view(access), access, offset, origin(instr)).f);
    }
  }
  void store_lanes(int32_t index, int lanes, const float* from, const Instr& instr) const {
    const Access& access = accesses_[index];
    int64_t offset = offset_of(access, slots_);
    const Base& base = bases_[access.view];
    for (int k = 0; k < lanes; ++k, offset += access.lane_stride) {
      if (!base.store) [[unlikely]] {
        slow_store(view(access), access, offset, {.f = from[k]}, origin(instr));
        continue;
      }
      put(base.store + offset, from[k]);
      if (base.written) std::memset(base.written + offset, 1, sizeof(float));
    }
  }

 private:
  const View& view(const Access& access) const { return views_[static_cast<size_t>(access.view)]; }
  const Origin& origin(const Instr& instr) const { return origin_of(code_, instr); }
  const Code& code_;
  const Access* accesses_;
  const std::vector<View>& views_;
  const Base* bases_;
  Slot* slots_;
};

}  // namespace

void Machine::execute(const Code& code, Frame& frame) {
  Slot* const s = frame.slots;
  const Instr* const first = code.instrs.data();
  const Memories memory(code, frame.views, frame.bases.data(), s);
  Cursor* const cursors = frame.cursors.data();
  float x[kMostQuickLanes], y[kMostQuickLanes], z[kMostQuickLanes];
  const Instr* at = first;
  for (;; ++at) {
    const Instr& i = *at;
    switch (i.op) {
      case Op::kNext:
        count_steps(i.immediate.i, code, i);
        if (++s[i.a].i < s[i.b].i) at = first + i.c - 1;
        break;
      case Op::kJump:
        count_steps(1, code, i);
        at = first + i.c - 1;
        break;
      case Op::kJumpIfZero:
        if (!s[i.a].i) at = first + i.c - 1;
        break;
      case Op::kJumpIfGE:
        if (s[i.a].i >= s[i.b].i) at = first + i.c - 1;
        break;
      case Op::kInnerLoop: {
        // In pieces, so that the limit of steps holds.
        constexpr int64_t kMostAtOnce = 1 << 16;
        constexpr int64_t kFew = 3;  // sooner done than begun
        const InnerLoop& loop = code.inner_loops[static_cast<size_t>(i.dst)];
        for (int64_t left = s[i.b].i - s[i.a].i; left >= kFew;) {
          const int64_t most = std::min(left, kMostAtOnce);
          const int64_t done = run_inner_loop(code, loop, frame.bases.data(), s, most);
          count_steps(done * loop.length, code, i);
          s[i.a].i += done;
          left = done < most ? 0 : left - done;
        }
        if (s[i.a].i >= s[i.b].i) at = first + i.c - 1;
        break;
      }
      case Op::kNextSteady: {
        constexpr int64_t kFew = 4;  // sooner done than begun
        count_steps(i.immediate.i, code, i);
        const int64_t left = s[i.b].i - s[i.a].i - 1;
        const SteadyLoop& loop = code.steady_loops[static_cast<size_t>(i.dst)];
        const bool steady = left >= kFew && open_cursors(code, loop, frame, left);
        ++s[i.a].i;
        if (left > 0) at = first + (steady ? loop.body : i.c) - 1;
        break;
      }
      case Op::kSteadyNext: {
        count_steps(i.immediate.i, code, i);
        if (++s[i.a].i < s[i.b].i) {
          at = first + i.c - 1;
          break;
        }
        const SteadyLoop& loop = code.steady_loops[static_cast<size_t>(i.dst)];
        if (loop.result >= 0) memory.store_any(loop.result, s[loop.result_slot], i);
        at = first + loop.exit - 1;
        break;
      }
      case Op::kLoadNextF: {
        Cursor& cursor = cursors[i.a];
        if (cursor.written && !*cursor.written) [[unlikely]]
          memory.fail_at(i.b, cursor.at, i);
        s[i.dst].f = get<float>(cursor.at);
        cursor.next();
        break;
      }
      case Op::kLoadNext: {
        Cursor& cursor = cursors[i.a];
        if (cursor.written && !*cursor.written) [[unlikely]]
          memory.fail_at(i.b, cursor.at, i);
        s[i.dst] = read_element(i.dtype, cursor.at);
        cursor.next();
        break;
      }
      case Op::kStoreNextF: {
        Cursor& cursor = cursors[i.a];
        put(cursor.at, static_cast<float>(s[i.dst].f));
        if (cursor.written) std::memset(cursor.written, 1, sizeof(float));
        cursor.next();
        break;
      }
      case Op::kStoreNext: {
        Cursor& cursor = cursors[i.a];
        write_element(i.dtype, cursor.at, s[i.dst]);
        if (cursor.written) std::memset(cursor.written, 1, static_cast<size_t>(i.dtype.bytes()));
        cursor.next();
        break;
      }
      case Op::kReturn: return;
      case Op::kMulAdd:
        s[i.dst].i = static_cast<int64_t>(static_cast<uint64_t>(s[i.a].i) +
                                          static_cast<uint64_t>(s[i.b].i) *
                                              static_cast<uint64_t>(i.immediate.i));
        break;
      case Op::kDivI: s[i.dst].i = s[i.a].i / i.immediate.i; break;
      case Op::kModI: s[i.dst].i = s[i.a].i % i.immediate.i; break;
      case Op::kAddI:
        s[i.dst].i =
            static_cast<int64_t>(static_cast<uint64_t>(s[i.a].i) + static_cast<uint64_t>(s[i.b].i));
        break;
      case Op::kSubI:
        s[i.dst].i =
            static_cast<int64_t>(static_cast<uint64_t>(s[i.a].i) - static_cast<uint64_t>(s[i.b].i));
        break;
      case Op::kMulI:
        s[i.dst].i =
            static_cast<int64_t>(static_cast<uint64_t>(s[i.a].i) * static_cast<uint64_t>(s[i.b].i));
        break;
      case Op::kAddI32: s[i.dst].i = wrapped(s[i.a].i + s[i.b].i); break;
      case Op::kSubI32: s[i.dst].i = wrapped(s[i.a].i - s[i.b].i); break;
      case Op::kMulI32: s[i.dst].i = wrapped(s[i.a].i * s[i.b].i); break;
      case Op::kMinI: s[i.dst].i = std::min(s[i.a].i, s[i.b].i); break;
      case Op::kMaxI: s[i.dst].i = std::max(s[i.a].i, s[i.b].i); break;
      case Op::kEqualI: s[i.dst].i = s[i.a].i == s[i.b].i; break;
      case Op::kNotEqualI: s[i.dst].i = s[i.a].i != s[i.b].i; break;
      case Op::kLessI: s[i.dst].i = s[i.a].i < s[i.b].i; break;
      case Op::kLessEqualI: s[i.dst].i = s[i.a].i <= s[i.b].i; break;
      case Op::kAndB: s[i.dst].i = s[i.a].i & s[i.b].i; break;
      case Op::kOrB: s[i.dst].i = s[i.a].i | s[i.b].i; break;
      // Sums, products and quotients of float32 values computed in double and rounded are those of
      // float32 arithmetic.
      case Op::kAddF: s[i.dst].f = static_cast<float>(s[i.a].f + s[i.b].f); break;
      case Op::kSubF: s[i.dst].f = static_cast<float>(s[i.a].f - s[i.b].f); break;
      case Op::kMulF: s[i.dst].f = static_cast<float>(s[i.a].f * s[i.b].f); break;
      case Op::kDivF: s[i.dst].f = static_cast<float>(s[i.a].f / s[i.b].f); break;
      case Op::kMinF: s[i.dst].f = least(s[i.a].f, s[i.b].f); break;
      case Op::kMaxF: s[i.dst].f = greatest(s[i.a].f, s[i.b].f); break;
      case Op::kLessF: s[i.dst].i = s[i.a].f < s[i.b].f; break;
      case Op::kLessEqualF: s[i.dst].i = s[i.a].f <= s[i.b].f; break;
      case Op::kFunctionF: s[i.dst].f = code.functions[i.code](static_cast<float>(s[i.a].f)); break;
      case Op::kCheckIndex:
        if (static_cast<uint64_t>(s[i.a].i) >= static_cast<uint64_t>(i.immediate.i)) [[unlikely]]
          out_of_bounds(frame.views[static_cast<size_t>(i.c)], static_cast<size_t>(i.b), s[i.a].i,
                        origin_of(code, i));
        break;
      case Op::kLoadF: s[i.dst].f = memory.load<float>(i.a, i); break;
      case Op::kLoadI64: s[i.dst].i = memory.load<int64_t>(i.a, i); break;
      case Op::kLoadI32: s[i.dst].i = memory.load<int32_t>(i.a, i); break;
      case Op::kLoadAt: memory.load_any(i.a, s[i.dst], i); break;
      case Op::kStoreF: memory.store(i.a, static_cast<float>(s[i.dst].f), i); break;
      case Op::kStoreAt: memory.store_any(i.a, s[i.dst], i); break;
      case Op::kAccumulate: {
        const float sum = memory.load<float>(i.a, i), a = memory.load<float>(i.b, i),
                    b = memory.load<float>(i.c, i);
        memory.store(i.a, i.code ? std::fma(a, b, sum) : sum + a * b, i);
        break;
      }
      case Op::kAccumulateLanes:
        memory.load_lanes(i.a, i.lanes, x, i);
        memory.load_lanes(i.b, i.lanes, y, i);
        memory.load_lanes(i.c, i.lanes, z, i);
        for (int k = 0; k < i.lanes; ++k)
          x[k] = i.code ? std::fma(y[k], z[k], x[k]) : x[k] + y[k] * z[k];
        memory.store_lanes(i.a, i.lanes, x, i);
        break;
      case Op::kLoadLanes:
        memory.load_lanes(i.a, i.lanes, x, i);
        for (int k = 0; k < i.lanes; ++k) s[i.dst + k].f = x[k];
        break;
      case Op::kStoreLanes:
        for (int k = 0; k < i.lanes; ++k) x[k] = static_cast<float>(s[i.dst + k].f);
        memory.store_lanes(i.a, i.lanes, x, i);
        break;
      case Op::kBinaryLanes:
        binary_lanes(static_cast<BinaryOp>(i.code), s + i.dst, s + i.a, s + i.b, i.lanes);
        break;
      case Op::kFmaLanes:
        for (int k = 0; k < i.lanes; ++k)
          s[i.dst + k].f =
              std::fma(static_cast<float>(s[i.a + k].f), static_cast<float>(s[i.b + k].f),
                       static_cast<float>(s[i.c + k].f));
        break;
      case Op::kMove:
        for (int k = 0; k < i.lanes; ++k) s[i.dst + k] = s[i.a + k];
        break;
      case Op::kSelect:
        for (int k = 0; k < i.lanes; ++k) s[i.dst + k] = s[i.a + k].i ? s[i.b + k] : s[i.c + k];
        break;
      case Op::kNot:
        for (int k = 0; k < i.lanes; ++k) s[i.dst + k].i = !s[i.a + k].i;
        break;
      default: step(code, i, origin_of(code, i), frame);
    }
  }
}

}  // namespace tenon::interp
