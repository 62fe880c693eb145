// Patterns of operators: graph functions whose parameters match anything, looked for in the
// bindings of another function.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tenon/graph/expr.h"

namespace tenon::graph {

/// A graph function as a pattern. A parameter matches any value that its type allows (a type
/// without shape or dtype allows all), and the same value wherever it repeats; a constant matches
/// its equal. The operands of add, multiply, maximum and minimum match in either order.
///
/// An operator's attributes must be those of the pattern. Function attr `any` names attributes that
/// may have any value (or is True: all of them).
///
/// Two things spelled differently are one:
///  - `permute_dims(w)` of a parameter matches a constant: w is its transpose;
///  - a parameter of rank 1 matches what has one dimension other than 1, as a bias that is
///    broadcast: it is that vector.
struct Pattern {
  std::string name;  // what it is called where it matches: "toy.dense_bias_relu"
  Ref<Function> function;
  size_t operators = 0;

  /// \throws CompileError (kBadPattern) where the function is no pattern: several results, no
  /// operator, control flow.
  Pattern(std::string name, Ref<Function> function);
};

/// Where a pattern was found.
struct PatternMatch {
  /// For each parameter of the pattern the value that it is, in terms of the searched function.
  std::vector<Value> arguments;
  /// The bindings that it consists of, in the order in which they stand; the last gives its result.
  std::vector<Ref<Binding>> bindings;
  /// What computes it, as bindings over the pattern's parameters (of the arguments' types).
  Ref<Function> function;
};

/// Looks for patterns in one function.
class PatternSearch {
 public:
  explicit PatternSearch(const Function& function);

  /// The match whose result is bound by `root`, where inside values have no other use. Where there
  /// is none, `why` (if given) says what differed, where the operators were the same.
  std::optional<PatternMatch> match(const Pattern& pattern, const Ref<Binding>& root,
                                    std::string* why = nullptr) const;

 private:
  friend class PatternMatcher;
  std::unordered_map<const Node*, Ref<Binding>> bindings_;  // by variable
  std::unordered_map<const Node*, size_t> positions_;
  std::unordered_map<const Node*, int> uses_;
};

}  // namespace tenon::graph
