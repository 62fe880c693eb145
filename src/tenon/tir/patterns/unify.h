// SPDX-License-Identifier: Apache-2.0
// Unifies a pattern with a target: finds values for its variables and buffers, by backtracking
// search.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tenon/arith/analyzer.h"
#include "tenon/tir/patterns/block_graph.h"

namespace tenon::tir {

/// What a pattern's buffer stands for.
struct Bound {
  Ref<Buffer> buffer;
  std::vector<size_t> dims;  // of the target's, one for each of the pattern's
  std::vector<Expr> base;    // where it begins in each dimension of the target's; empty: at 0
};

struct Solution {
  std::vector<size_t> blocks;  // of the target's graph, one for each definition of the pattern
  std::map<const Node*, Expr> values;
  std::map<const Node*, Bound> buffers;
};

/// How buffers of a pattern lie in those of a target.
enum class Extent : uint8_t {
  kWhole,   // as all of one
  kRegion,  // as a part of one, which begins anywhere
};

/// The definitions of a pattern. \throws CompileError (kBadPattern)
struct PreparedPattern {
  explicit PreparedPattern(const PrimFunc& function);

  const PrimFunc& function;
  std::vector<Definition> definitions;
  std::set<const Node*> written;  // buffers
  std::set<const Node*> locals;   // allocated by it
};

class Unifier {
 public:
  Unifier(const PreparedPattern& pattern, const BlockGraph& target, Extent extent);

  /// The solution whose first definition is block `first`, that `accept` takes, and that permutes
  /// the dimensions of the fewest buffers; the first of them.
  std::optional<Solution> find(size_t first,
                               const std::function<bool(const Solution&, std::string&)>& accept);

  /// What differed where the pattern came nearest, of all calls of find.
  const std::string& nearest() const { return nearest_; }

 private:
  struct Goal {
    Expr pattern, target;
  };
  struct State;
  struct AxisInfo {
    Expr extent;
    IterKind kind;
  };
  using Accept = std::function<bool(const Solution&, std::string&)>;

  bool next_definition(const State& state);
  bool begin(State state, size_t block);
  bool solve(State state);
  bool solve_expr(State& state, const Goal& goal);
  bool solve_binary(State& state, const Goal& goal);
  bool solve_load(State& state, const Goal& goal);
  bool bind_buffer(State& state, const BufferLoad& pattern, const BufferLoad& target);
  bool try_dims(const State& state, const BufferLoad& pattern, const BufferLoad& target,
                std::vector<size_t>& dims);
  bool solve_arithmetic(State state);
  enum class Step : uint8_t { kFailed, kSolved, kKept };
  Step step(State& state, const Goal& goal);
  bool assign_axis(State& state, const Node* axis, const Expr& value);
  bool bind_value(State& state, const Node* variable, const Expr& value);
  bool fail(const State& state, std::string words);

  Expr known(const State& state, const Expr& pattern);
  std::vector<const Var*> unknown(const Expr& pattern) const;
  bool is_invariant(const Expr& target) const;
  bool may_equal(const State& state, const Expr& pattern, const Expr& target);
  Expr wide(const Expr& expr);
  Ref<Var> wide(const Ref<Var>& var);
  Expr narrow(const Expr& expr) const;

  const PreparedPattern& pattern_;
  const BlockGraph& target_;
  Extent extent_;
  arith::Analyzer analyzer_;
  std::map<const Node*, Ref<Var>> wide_;  // int64 for narrower variables
  std::map<const Node*, Expr> narrow_;    // and back, as int64
  std::map<const Node*, AxisInfo> pattern_axes_, target_axes_;
  std::vector<Ref<Var>> target_order_;  // of target_axes_
  std::set<const Node*> pattern_scalars_;
  std::map<const Node*, const Node*> scalar_of_;  // wide scalars to those of the pattern
  const Accept* accept_ = nullptr;
  std::optional<Solution> found_;
  std::string nearest_;
  int best_ = -1;
  int64_t steps_ = 0;
  size_t may_permute_ = 0;  // buffers
  bool would_permute_ = false;
};

}  // namespace tenon::tir
