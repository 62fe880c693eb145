// SPDX-License-Identifier: Apache-2.0
// A match as a plugin sees it: inputs, operators with their attributes and operands, outputs. The
// structs here are the opaque ones of include/tenon/backend.h.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tenon/backend.h"
#include "tenon/graph/expr.h"
#include "tenon/ir/module.h"

struct TenonMatch;

namespace tenon::plugin {

/// What a match is asked that is not kept in it.
class MatchSource {
 public:
  virtual ~MatchSource() = default;
  virtual std::string text(const TenonMatch& match) const = 0;
  virtual std::optional<std::string> choice(const TenonMatch& match, int32_t op) const = 0;
  /// The elements of a constant input; they stay where they are.
  virtual const void* data(const TenonMatch& match, int32_t input) const = 0;
};

}  // namespace tenon::plugin

/// One composite, region or PrimFunc, read once. Everything that the host hands out is kept here.
struct TenonMatch {
  struct Tensor {
    TenonTensor view = {};
    std::string name, type, dtype;
    std::vector<int64_t> shape;
    std::vector<int32_t> symbols;
    tenon::Ref<tenon::graph::TensorType> tensor;
    tenon::Ref<tenon::TensorData> data;  // of a constant
    bool has_data = false;               // of a constant whose data is asked for when it is seen
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
  std::vector<std::string> symbol_names;
  bool has_symbolic_shapes = false;

  // Filled when first asked for.
  mutable std::string text;
  mutable std::map<std::string, std::vector<int64_t>> int_lists;
  mutable std::deque<std::string> texts;

  const tenon::plugin::MatchSource* source = nullptr;
  std::vector<int32_t> place = {};  // which part of the parts of a region it is
  uint64_t number = 0;              // of no other match of this process

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

/// Attribute of a composite: what the names of its pattern are bound to, each a list of the kind of
/// operand (TENON_OPERAND_INPUT, TENON_OPERAND_OPERATOR) and the index. read_match makes annotations
/// of it.
inline constexpr const char* kBindings = "bindings";
void annotate(TenonMatch& match, const AttrValue::Map& bindings);

/// Reads graph function `function` of `module`. Its constants become inputs after its parameters,
/// in the order in which they are first used. A dimension that is an expression (n * m) and becomes
/// a symbol is that symbol in the types of all its tensors.
/// \throws CompileError (kUnsupported) at what no plugin is shown: control flow, closures, values
/// that are no tensors.
std::unique_ptr<TenonMatch> read_match(const IRModule& module, const Ref<graph::Function>& function,
                                       const MatchContext& context);

}  // namespace tenon::plugin
