// SPDX-License-Identifier: Apache-2.0
// One attempt to match a pattern. Internal to graph/patterns/.
#pragma once

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tenon/graph/patterns/match_index.h"
#include "tenon/graph/patterns/type_match.h"

namespace tenon::graph {

/// An operator as the value that a callee's pattern sees.
struct OpValue final : NodeOf<OpValue, ValueNode> {
  const OpDef* op;
  explicit OpValue(const OpDef* op) : NodeOf(Origin()), op(op) { finish_node(*this); }
  void finish() {}
  static constexpr ValueKind kKind = ValueKind::kOpValue;
  static constexpr std::string_view kName = "graph.OpValue";
  static std::vector<FieldInfo> fields() { return {field<&OpValue::op>("op")}; }
};

/// The furthest that attempts came which failed (near_miss.cpp).
struct FailedAttempt {
  int score = -1;      // what matched, weighed by kind
  size_t matched = 0;  // operators
  std::string why = {};
  Value seen = {};  // what differs
};

/// A list of goals is worked off; where there are several ways, the others are kept as choices and
/// tried when a later goal fails. Nothing recurses but `~p`, so the depth of a graph is of no
/// matter.
class MatchRun {
 public:
  /// `furthest`, if given, is told of failures that came further than what it has; the attempt then
  /// gives up early.
  explicit MatchRun(Matcher::Index& index, FailedAttempt* furthest = nullptr)
      : index_(index), furthest_(furthest) {}

  /// Asked about each solution of the root's pattern; null: all are taken.
  const MatchCondition* condition = nullptr;

  bool match(const DFPattern& pattern, const Value& root);
  bool match(const PatternContext& context, const BindingBlock& block);
  /// After a match. Of several ways the first one whose inner values have no other use, or the
  /// first.
  Match result() const { return is_solved_ ? solution() : *open_match_; }
  const std::string& why() const { return why_; }
  /// Values as messages name them: "`nn.relu` (`/r1`)", "a constant".
  std::string describe(const Value& value) const;
  /// What uses an inner value of a match outside of the variables `inside`.
  std::string other_use(const Value& value, const std::unordered_set<const Node*>& inside) const;

 private:
  struct Goal {
    enum class Kind : uint8_t { kMatch, kUnordered, kPick, kPicked } kind = Kind::kMatch;
    const PatternNode* pattern = nullptr;
    Value value = {};
    size_t number = 0;            // kPick, kPicked: of the node; kUnordered: of the item
    std::vector<bool> used = {};  // kUnordered: items of the value that are taken
    int64_t next = -1;
  };
  struct Mark {
    size_t bound, inside, inputs;
    DimBindings::Mark dims;
  };
  /// Ways that are still to be tried: lists of goals, or values for node `pick`.
  struct Choice {
    std::vector<int64_t> ways = {};
    std::vector<Value> candidates = {};
    size_t pick = 0, tried = 0;
    int64_t rest = -1;
    size_t goals;  // how many existed
    Mark mark;
  };

  Match solution() const;

  // -- what a match takes from outside (match_operands.cpp)
  /// A pattern inside of another one, or an operand that a call's pattern says nothing of.
  struct Part {
    const PatternNode* pattern = nullptr;
    Value open = {};
  };
  std::vector<MatchInput> operands(const std::vector<Ref<Binding>>& bindings) const;
  std::vector<MatchInput> in_order_of_pattern(const std::vector<MatchInput>& found) const;
  std::vector<Part> parts_of(const PatternNode& pattern, const Value& value) const;

  Mark mark() const { return {bound_log_.size(), inside_.size(), inputs_.size(), dims_.mark()}; }
  void undo(const Mark& mark);
  bool solve(int64_t goals);
  bool backtrack(size_t base);
  void push(const PatternNode* pattern, const Value& value);
  void push_all(const std::vector<PatternPtr>& patterns, const std::vector<Value>& values);
  int64_t add(Goal goal);
  void choose(std::vector<int64_t> ways);
  bool is_done();

  bool step(const Goal& goal);
  bool step_match(const PatternNode* pattern, const Value& value);
  bool step_unordered(const Goal& goal);
  bool step_pick(size_t number);
  bool step_picked(size_t number);

  bool match_leaf(const PatternNode& pattern, const Value& given, const Value& value);
  bool match_property(const PatternNode& pattern, const Value& value);
  bool match_call(const CallPattern& pattern, const Value& value);
  bool match_attrs(const AttrPattern& pattern, const Value& value);
  bool match_tuple(const TuplePattern& pattern, const Value& value);
  bool match_item(const TupleGetItemPattern& pattern, const Value& value);
  bool match_function(const FunctionPattern& pattern, const Value& value);
  bool match_param(const ParamPattern& pattern, const Value& value);
  bool match_transposed(const TransposedPattern& pattern, const Value& value);
  bool bind_param(const ParamPattern& param, const Value& seen, Value argument,
                  MatchInput::View view);
  bool match_graph(const GraphPattern& pattern, const Value& value);

  bool bind(const PatternNode* pattern, const Value& value);
  Value known(const PatternNode* pattern) const;
  Value resolved(const Value& value) const;  // through names of names
  Value item_of(const Value& value) const;   // of a tuple that is known: its item
  Value computed(const Value& value) const;  // what is bound to it
  void enter(const Value& value);            // its binding is a part of the match
  bool differ(std::string why);
  Value vector_of(const Value& value, const std::vector<Expr>& dims) const;

  // -- what is told of a failure (near_miss.cpp)
  void note_failure(const Goal* goal);
  std::string difference(const PatternNode& pattern, const Value& given) const;
  std::string place_of(const PatternNode& pattern, const Value& given) const;
  std::string open_value() const;

  // -- several patterns together (match_context.cpp)
  struct Context;
  void plan_context(const PatternContext& context);
  bool is_consistent(const UseConstraint& use) const;
  bool uses_hold() const;
  std::vector<Value> users(const Value& value) const;
  std::optional<std::vector<Value>> constrained(const PatternNode* pattern) const;
  std::optional<std::vector<Value>> candidates(const PatternNode* pattern, int depth) const;
  std::vector<const Node*> escaping(const std::vector<const Node*>& outputs) const;
  bool is_graph_closed() const;
  size_t channels_from_end(const Value& value) const;
  bool vectors_lie_along_channels();

  Matcher::Index& index_;
  std::vector<Goal> goals_;
  std::vector<Choice> choices_;
  int64_t current_ = -1;
  int64_t steps_ = 0;

  std::unordered_map<const Node*, Value> bound_;
  std::vector<const Node*> bound_log_;
  std::vector<const Node*> inside_;  // variables of matched bindings, some more than once
  std::vector<std::pair<const ParamPattern*, MatchInput>> inputs_;
  DimBindings dims_;

  const GraphPattern* graph_ = nullptr;    // the root, where it is one
  std::vector<const PatternNode*> nodes_;  // picked one after the other
  const PatternContext* context_ = nullptr;
  const BindingBlock* block_ = nullptr;
  Value root_;
  std::vector<const PatternNode*> roots_;  // that one's pattern, or the context's
  std::string why_;
  /// The first match whose inner values are used elsewhere too: taken where there is no other.
  std::optional<Match> open_match_;
  int64_t last_step_ = 0;  // where looking for another ends
  bool is_solved_ = false;
  int nested_ = 0;  // inside of `~p`
  FailedAttempt* furthest_;
};

}  // namespace tenon::graph
