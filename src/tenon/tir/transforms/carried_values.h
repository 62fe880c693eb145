// SPDX-License-Identifier: Apache-2.0
// Finds loops that carry values of a buffer from one iteration to a later one. Internal to
// transforms/.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tenon/arith/iter_map.h"
#include "tenon/tir/call_effects.h"

namespace tenon::tir {

/// Told of a function's accesses in program order, with the scopes around each: who walks the
/// function calls enter() and leave() around what stands inside.
class CarriedValues {
 public:
  CarriedValues(const std::vector<Ref<Buffer>>& buffers, CallEffects& effects);

  void enter(int scope, const For& loop);
  void enter(int scope, const BlockRealize& realize);
  /// A branch under `condition`; null: under the opposite of one.
  void enter(int scope, const Expr& condition);
  void leave();

  /// A statement without loops, blocks and branches inside; or an expression.
  void statement(const Stmt& stmt);
  void value(const NodePtr& expr);
  /// Something that is not followed: it may read and write all that it names.
  void opaque(const NodePtr& node);

  /// Whether an iteration of loop `scope` may read what an earlier one wrote to `buffer`. False
  /// only where every read in the loop is known to see no more than what its own iteration wrote
  /// before, or what no iteration writes.
  bool carries(const Buffer& buffer, int scope) const;

 private:
  struct Scope {
    int id;
    const For* loop = nullptr;     // null: a branch or block
    arith::Iterator iterator;      // of the loop; in terms of the loops around
    std::vector<Expr> conditions;  // of the branch or block; in terms of the loops
    bool is_understood = true;     // false: its conditions are not known
  };
  struct Access {
    std::vector<Scope> scopes;  // outermost first
    std::vector<Range> region;  // in terms of the loops
    bool writes = false;
    bool is_certain = true;  // of a write: all of the region is written
  };
  class Question;

  void record(const Ref<Buffer>& buffer, std::vector<Range> region, bool writes, bool is_certain);
  void record_whole(const Ref<Buffer>& buffer);
  void record_region(const BufferRegion& region, const ParamEffect& effect);
  void load(const BufferLoad& load);
  void store(const BufferStore& store);
  void conditional(const Expr& condition, const NodePtr& inner);
  std::optional<Range> range_of(const Expr& index);
  Expr resolved(const Expr& expr) { return substitute(expr, values_); }
  bool is_known(const NodePtr& expr) const;

  CallEffects& effects_;
  std::unordered_map<const Node*, Ref<Buffer>> pointers_;  // of the buffers that count
  std::unordered_map<const Node*, std::vector<Access>> accesses_;
  std::unordered_set<const Node*> aliased_;
  std::vector<Scope> scopes_;
  Substitution values_;  // axes and names, in terms of the loops
  std::unordered_set<const Node*> unknown_;
  int next_value_ = -2;  // ids of scopes inside of expressions
};

}  // namespace tenon::tir
