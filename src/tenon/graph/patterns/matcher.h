// SPDX-License-Identifier: Apache-2.0
// Finds patterns (graph/patterns/dataflow_pattern.h) in one graph function.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "tenon/graph/patterns/dataflow_pattern.h"

namespace tenon::graph {

/// An input of what matched: a value that it uses and does not compute.
struct MatchInput {
  std::string name;  // of the pattern's parameter, or of the variable
  Value seen;        // as it stands in the searched function
  Value argument;    // what a call passes: `seen`, or a call on it (its transpose, the vector)
  /// What the composite computes from its parameter in the place of `seen`.
  enum class View : uint8_t { kItself, kTranspose, kReshape } view = View::kItself;
  /// What patterns see of it: through names of names, of an item of a known tuple that item.
  Value matched = {};
};

/// Where a pattern was found.
struct Match {
  /// By pattern node the value that it matched: of what is bound the variable.
  std::unordered_map<const Node*, Value> values;
  /// Bindings that the pattern's calls, tuples and items matched, in the order in which they stand.
  std::vector<Ref<Binding>> bindings;
  /// What its results are bound to: the root's variable, of a graph function with several results
  /// one for each.
  std::vector<Ref<Var>> outputs;
  /// What the bindings use and none of them computes, each once, in the order of the pattern: its
  /// operands depth first, from left to right, those of commutative operators as the pattern writes
  /// them, those that it leaves open in the order of the call. The order of bindings plays no part.
  std::vector<MatchInput> operands;
  /// Of a graph function as pattern its parameters, in order; of others the operands that are no
  /// constants.
  std::vector<MatchInput> inputs;
  bool states_inputs = false;  // the pattern is a graph function, whose parameters they are
  /// Inner variables that are used outside too, other than `outputs`.
  std::vector<Ref<Var>> escaping;
  /// What the pattern's bare dimensions stand for.
  std::unordered_map<const Node*, NodePtr> dims;

  /// What `pattern` matched; null where it has no part in this match (another alternative had).
  Value operator[](const DFPattern& pattern) const;
  /// The expression that is bound to what `pattern` matched (a Call, a Tuple), or that value.
  Value expr(const DFPattern& pattern) const;
  std::vector<Value> arguments() const;  // of `inputs`
};

/// What a match computes as a function of its own.
struct Composite {
  Ref<Function> function;        // private, attr `Composite` = its name
  std::vector<Value> arguments;  // Vars, constants, or calls on them (views of constants)
};
struct CompositeOptions {
  /// Constants stand in the function; otherwise they are parameters of it: among the others in the
  /// order of Match::operands, after those that a graph function states. What a parameter of a graph
  /// function matched is a parameter always, a constant that the pattern names by its value never.
  bool bind_constants = true;
  /// Names for parameters, by what was matched; those of a graph function have names.
  std::map<std::string, Value> names = {};
  /// What it returns (a tuple where there are several); empty: the match's outputs.
  std::vector<Ref<Var>> outputs = {};
};
/// Attribute of a composite whose pattern is of combinators and names all of its parameters: their
/// names, in order.
inline constexpr const char* kOperandNames = "operands";
/// The matched bindings over parameters of the arguments' types, in attr-complete calls.
Composite make_composite(const std::string& name, const Match& match,
                         const CompositeOptions& options = {});

/// Whether a way in which a pattern matches is taken. Where it is not, the others are tried: the
/// other order of operands, the next alternative.
using MatchCondition = std::function<bool(const Match& match)>;

/// An index of one function, in which patterns are looked for. Time for each attempt is that of
/// the pattern, not of the function.
class Matcher {
 public:
  /// The module is where `is_call_tir` finds PrimFuncs; may be null.
  Matcher(const IRModule* module, const Function& function);
  /// Of a function that is under construction: it knows what `redefine` tells it.
  explicit Matcher(const IRModule* module);
  ~Matcher();
  Matcher(const Matcher&) = delete;
  Matcher& operator=(const Matcher&) = delete;

  /// The match whose root is bound by `root`, or nothing; then `why` (if given, and empty) says
  /// what differed where the operators were the same.
  /// \throws CompileError (kBadPattern) where the pattern takes too many steps.
  std::optional<Match> match(const DFPattern& pattern, const Ref<Binding>& root,
                             std::string* why = nullptr) const;
  /// The same of any value of the function, or of a call that is not bound yet: the first match
  /// that `condition`, if given, takes.
  std::optional<Match> match(const DFPattern& pattern, const Value& value,
                             std::string* why = nullptr,
                             const MatchCondition& condition = {}) const;
  /// Finds all patterns of the context in one dataflow block, each at a binding of its own (a
  /// pattern that may be a parameter of the function: at that); the first in the order of bindings.
  std::optional<Match> match_dfb(const PatternContext& context, const BindingBlock& block) const;

  /// The bindings that may be roots of the pattern, by their operators, in order.
  std::vector<Ref<Binding>> roots(const DFPattern& pattern) const;

  /// Nothing that is computed outside between these bindings uses one of them and is used by one.
  bool is_convex(const std::vector<Ref<Binding>>& bindings) const;

  /// The binding of a variable; null for parameters.
  Ref<Binding> binding_of(const Value& var) const;
  /// Notes that `binding` now gives its variable, as a rewriter goes along.
  void redefine(const Ref<Binding>& binding);

  /// Pattern nodes compared with values so far: a measure of work that no machine changes.
  int64_t steps() const;

 private:
  friend class MatchRun;
  friend class NearestMiss;
  struct Index;
  std::unique_ptr<Index> index_;
};

}  // namespace tenon::graph
