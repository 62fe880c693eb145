// What a back end takes: a pattern with a name, and what is asked before a match is made a
// composite.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tenon/graph/expr.h"
#include "tenon/tir/stmt.h"

namespace tenon::graph {

struct DFPatternNode;
using DFPattern = std::shared_ptr<const DFPatternNode>;
struct Match;

/// The answer to a match. Refused: the code is for counting ("dtype", "layout", "shape", "rank"),
/// the words are for people.
struct Verdict {
  bool accepted = true;
  std::string code;
  std::string words;
};

/// What a check is given: the match where it stands, and the composite that it would become.
struct PatternCheck {
  const IRModule& module;
  const Function& function;
  const Match& match;
  Ref<Function> composite;
  const std::map<std::string, Value>& annotated;
};

struct FusionPattern {
  std::string name;             // "dnnl.conv2d_relu": before the first dot is the back end
  DFPattern pattern = {};       // over graph operators; null where it is TensorIR only
  Ref<tir::PrimFunc> tir = {};  // over TensorIR; null where it is graph only
  int priority = 0;             // higher first; then the larger; then the order of registration
  std::map<std::string, DFPattern> annotations = {};
  std::function<Verdict(const PatternCheck&)> check = {};
  std::function<Attrs(const PatternCheck&)> attrs = {};
};

}  // namespace tenon::graph
