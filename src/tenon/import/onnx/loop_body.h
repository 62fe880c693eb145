// SPDX-License-Identifier: Apache-2.0
// The bodies of loops: graphs that become functions of the module.
#pragma once

#include <set>
#include <vector>

#include "tenon/import/onnx/collection.h"

namespace tenon::onnx {

/// What a loop repeats, and on what.
struct LoopParts {
  Expr count;                   // of iterations, at most
  Value condition;              // before the first; null: it holds
  bool has_condition = false;   // the graph takes the iteration and a condition, and gives one
  std::vector<ItemRef> states;  // as they begin
  std::vector<Value> slices;    // tensors of which each iteration gets a part of the first axis
  std::set<size_t> reversed_inputs, reversed_outputs;
  Value length;  // null, or an integer: states stay as they are from that iteration on
};

/// Thrown where results that are stacked have dimensions that each iteration decides: their dtypes, by
/// their places among the results of the loop.
struct OpenShapes {
  std::map<size_t, DType> results;
};

/// The last states, then what is stacked along a new first axis. Sequences and optionals among the
/// states are carried packed. \throws CompileError at operands that do not fit the graph, Unsupported
/// where a state becomes another kind of value.
std::vector<ItemRef> repeat(Context& context, const Graph& graph, const LoopParts& parts);

/// Of a `Loop`.
LoopParts loop_parts(Context& context);

/// The same of a function that the caller builds: `build` is given the parts of `slices` that belong
/// to one iteration.
std::vector<Value> for_each(
    Context& context, const Expr& count, const std::vector<Value>& slices,
    const std::function<std::vector<Value>(const std::vector<Value>&)>& build);

}  // namespace tenon::onnx
