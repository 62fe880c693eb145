// SPDX-License-Identifier: Apache-2.0
// Emits flat code. Each open loop has its own list of instructions, so that
// loop-invariant values are computed in front of the loop, and known values
// once.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "tenon/interp/code.h"

namespace tenon::interp {

/// What an integer is known to lie between, both included. Far ends stand for "unknown".
struct Bounds {
  static constexpr int64_t kFar = int64_t{1} << 61;
  int64_t low = -kFar, high = kFar;

  static Bounds of(int64_t value) { return {value, value}; }
  static Bounds of(DType dtype);
  bool is_constant() const { return low == high; }
  bool within(const Bounds& other) const { return low >= other.low && high <= other.high; }
  bool is_known() const { return low > -kFar && high < kFar; }
};
Bounds operator+(const Bounds& a, const Bounds& b);
Bounds operator*(const Bounds& a, int64_t factor);

class Emitter {
 public:
  /// `hoists`: false leaves every instruction where it stands.
  Emitter(Code& code, bool hoists);

  // ---- slots

  /// Slots that last until release(): what a statement needs.
  int32_t temporary(int lanes);
  int32_t mark() const { return next_; }
  void release(int32_t mark) { next_ = mark; }
  /// A slot that holds a constant from the start; -1 where no more of them fit.
  int32_t constant(bool is_float, Slot value);

  /// A slot of its own for a variable: from its assignment on it holds one value until the
  /// innermost open loop takes its next step.
  int32_t definition(const Bounds& bounds);
  bool is_settled(int32_t slot) const { return depth_of(slot) >= 0; }
  /// How many loops are around the place where the slot gets its value; -1 where it is not settled.
  int depth_of(int32_t slot) const;
  const Bounds& bounds_of(int32_t slot) const;

  // ---- instructions

  Instr& emit(Instr instr);
  /// An operation without effects that cannot fail, of operands in slots: where all of them are
  /// settled it is computed once, in front of the loops in which they do not vary. Sets `dst`.
  int32_t value(Instr instr, std::initializer_list<int32_t> operands, const Bounds& bounds = {});

  int32_t here() const { return static_cast<int32_t>(levels_.back().instrs.size()); }
  Instr& at(int32_t index) { return levels_.back().instrs[static_cast<size_t>(index)]; }

  /// What is emitted until leave_branch() may not run: its values are known inside only.
  size_t enter_branch() const { return known_order_.size(); }
  void leave_branch(size_t branch);

  void open_loop();
  /// Puts the innermost list after what its parent has, which now ends in front of it; gives where.
  int32_t close_loop();
  int depth() const { return static_cast<int>(levels_.size()) - 1; }

  void set_origin(const Origin& origin) { origin_ = origin; }
  const Origin& origin() const { return origin_; }

  /// Into `code`, when all loops are closed.
  void finish();

 private:
  struct Level {
    std::vector<Instr> instrs;
    std::vector<Origin> origins;
    size_t known = 0;  // how many values there were when it began
  };
  // An operation and its operands.
  struct Key {
    uint64_t what, operands, more;
    int64_t immediate;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const;
  };
  struct Fact {
    int depth = -1;
    Bounds bounds;
  };
  void forget(size_t from, int depth);
  Fact& fact(int32_t slot);

  Code& code_;
  const bool hoists_;
  std::vector<Level> levels_{1};
  std::vector<Fact> facts_;  // by slot
  std::unordered_map<Key, int32_t, KeyHash> known_;
  std::vector<std::pair<Key, int>> known_order_;  // with the depth of each
  std::unordered_map<uint64_t, int32_t> constants_[2];
  int32_t next_, next_kept_;
  Origin origin_;
};

}  // namespace tenon::interp
