// What a plugin sees of a part of the graph: inputs, operators with their attributes and wiring,
// outputs. The structs here are the opaque ones of include/tenon/backend.h.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tenon/backend.h"
#include "tenon/graph/expr.h"
#include "tenon/ir/module.h"

/// One composite, region or PrimFunc, read once. Everything that the host hands out is kept here.
struct TenonMatch {
  struct Tensor {
    TenonTensor view = {};
    std::string name, type, dtype;
    std::vector<int64_t> shape;
    std::vector<int32_t> symbols;
    tenon::Ref<tenon::graph::TensorType> tensor;
    tenon::Ref<tenon::TensorData> data;  // of a constant
  };
  struct Operand {
    TenonOperand view = {};
    std::vector<int64_t> ints;
    std::string text;
  };
  struct Operator {
    std::string name;
    tenon::Attrs attrs;
    std::vector<std::unique_ptr<Operand>> operands;
    std::vector<std::unique_ptr<Tensor>> results;
    std::unique_ptr<TenonMatch> part;
  };

  std::string pattern, symbol, where, target;
  tenon::IRModule module;  // in which the function stands
  tenon::Ref<tenon::graph::Function> function;
  tenon::Attrs attrs;  // of the match itself
  std::map<std::string, std::string> options;
  std::map<std::string, std::unique_ptr<Operand>> annotations;

  std::vector<std::unique_ptr<Tensor>> inputs, outputs;
  std::vector<std::unique_ptr<Operand>> output_sources;
  std::vector<Operator> operators;
  std::vector<tenon::Ref<tenon::Var>> symbols;  // dimensions of the inputs that are no numbers
  bool has_symbolic_shapes = false;

  // Filled when first asked for.
  mutable std::string text;
  mutable std::map<std::string, std::vector<int64_t>> int_lists;
  mutable std::deque<std::string> texts;

  const tenon::Attrs* attrs_of(int32_t op) const;
};

namespace tenon::plugin {

struct MatchContext {
  std::string symbol = {};
  std::map<std::string, std::string> options = {};
  /// Of the interface that the plugin is made for. From 1.1 on every dimension of the inputs that
  /// is no number is a symbol of its own; before, expressions are where they do not follow from
  /// others.
  uint32_t abi = TENON_BACKEND_ABI;
  int depth = 0;  // of parts in parts
};

/// Reads graph function `function` of `module`. Its constants become inputs after its parameters,
/// in the order in which they are first used. A dimension that is an expression (n * m) and becomes
/// a symbol is that symbol in the types of all its tensors.
/// \throws CompileError (kUnsupported) at what no plugin is shown: control flow, closures, values
/// that are no tensors.
std::unique_ptr<TenonMatch> read_match(const IRModule& module, const Ref<graph::Function>& function,
                                       const MatchContext& context);

}  // namespace tenon::plugin
