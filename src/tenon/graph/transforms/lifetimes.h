// SPDX-License-Identifier: Apache-2.0
// Lifetimes of the memory of a graph function's values; views keep alive what they show.
#pragma once

#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "tenon/graph/expr.h"
#include "tenon/tir/shared_buffers.h"

namespace tenon::graph {

/// The results of `function` in the memory of a parameter. \throws CompileError (kBadAttribute)
std::vector<tir::SharedBuffer> shared_buffers_of(const Function& function);

/// Lifetimes in one function, in order of its bindings; those in the branches of an If come one
/// branch after the other, before what follows the If.
class Lifetimes {
 public:
  /// \param function  legalised; must outlive this object.
  explicit Lifetimes(const Function& function);

  /// Whether the call that `binding` binds may write over the memory of its argument `value`: a
  /// call made it, or it is a parameter that shares its memory with a result; this one uses it once,
  /// and nobody uses it (or a view of it) afterwards.
  bool ends_in(const Binding& binding, const Value& value) const;

  /// Whether nobody uses the memory of `value`, or a view of it, in `binding` or afterwards.
  bool ends_before(const Binding& binding, const Value& value) const;

  /// The binding of a variable of the function; null for parameters and what is no variable.
  const Binding* binding_of(const Value& value) const;

 private:
  static constexpr int64_t kForever = std::numeric_limits<int64_t>::max();

  void sequence(const SeqExpr& seq);
  void bind(const Binding& binding);
  void use(const Value& value, int64_t time);
  const Node* memory_of(const Value& value) const;

  std::unordered_map<const Node*, const Binding*> bindings_;  // of variables
  std::unordered_map<const Node*, const Node*> memory_;       // of views: the variable viewed
  std::unordered_map<const Node*, int64_t> last_use_;         // of variables that are no views
  std::unordered_map<const Binding*, int64_t> time_;
  std::unordered_set<const Node*> shared_;  // parameters whose memory is that of a result
  int64_t now_ = 0;
};

}  // namespace tenon::graph
