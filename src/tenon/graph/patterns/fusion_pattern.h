// SPDX-License-Identifier: Apache-2.0
// A registered pattern: a name, the graph pattern, and the check of a match.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tenon/graph/patterns/matcher.h"

namespace tenon::graph {

/// The answer to a match: taken, or why not.
struct Verdict {
  bool accepted = true;
  std::string code = {};   // "dtype", "layout", "shape", "rank", ...: for counting
  std::string words = {};  // for people

  static Verdict refuse(std::string code, std::string words) {
    return {false, std::move(code), std::move(words)};
  }
};

/// What a check sees of a match.
struct PatternCheck {
  const IRModule& module;
  const Function& function;  // in which it was found
  const Match& match;
  Ref<Function> composite;                        // what it would become
  const std::map<std::string, Value>& annotated;  // by name of FusionPattern::annotations
};

struct FusionPattern {
  /// The composite's name: "dnnl.conv2d_relu"; what stands before the first dot is the back end.
  std::string name;
  DFPattern pattern = {};       // over graph operators; null where it is over TensorIR only
  Ref<tir::PrimFunc> tir = {};  // over TensorIR; null where it is over graph operators only
  int priority = 0;             // higher first; then the larger; then the order of registration
  /// Whether constants that it matches stand in the composite or are parameters of it; none: as the
  /// pass that looks for it says.
  std::optional<bool> bind_constants = {};
  std::map<std::string, DFPattern> annotations = {};  // its parts that have names
  std::function<Verdict(const PatternCheck&)> check = {};
  /// Attributes of the composite, beside `Composite`.
  std::function<Attrs(const PatternCheck&)> attrs = {};
  Origin origin = {};     // where its text stands
  bool is_users = false;  // the user's own: one that matches nothing is most likely a mistake
};

/// The name of the back end that the pattern belongs to.
std::string backend_of(const FusionPattern& pattern);
/// The parts of a match that the pattern's annotations name.
std::map<std::string, Value> annotated_values(const FusionPattern& pattern, const Match& match);

/// Attribute of a composite: for each label of its pattern that stands at an operator (a variable's
/// name in a graph function, Python's or an annotation's in combinators) the position of that
/// operator among operator_bindings (graph/operator_attributes.h).
inline constexpr const char* kLabels = "labels";
/// What `match` of the pattern becomes, with its labels and the names of its annotations.
Composite make_composite(const FusionPattern& pattern, const Match& match,
                         CompositeOptions options = {});

/// The order in which patterns are tried: indices into `patterns`.
std::vector<size_t> order_of_patterns(const std::vector<FusionPattern>& patterns);

/// Patterns of a module: each graph function (pattern_from_function) and each PrimFunc, under its
/// attr `Composite` or `Pattern`, or its name; a name without a dot gets `backend` and a dot before
/// it. Attr `priority` of the function is the pattern's.
/// \throws CompileError (kBadPattern).
std::vector<FusionPattern> read_patterns(const IRModule& module, const std::string& backend = {});

}  // namespace tenon::graph
