// SPDX-License-Identifier: Apache-2.0
// Imports ONNX networks as modules with one graph::Function `main`.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tenon/graph/expr.h"
#include "tenon/import/onnx/model.h"
#include "tenon/ir/module.h"

namespace tenon::onnx {

struct ImportOptions {
  /// Shapes of inputs by their names, in place of those that the file declares; -1 keeps the
  /// file's dimension.
  std::map<std::string, std::vector<int64_t>> input_shapes = {};
  /// Says ranks of inputs, where neither the file nor `input_shapes` says them.
  std::function<std::optional<size_t>(const std::string& input)> rank_of = {};
  /// How many tensors inputs hold that are sequences, by their names; kAbsent: the input, an optional,
  /// is absent. Of other sequences, shapes of NAME[0], NAME[1], ... say it; other optionals are there.
  std::map<std::string, int64_t> lengths = {};
  static constexpr int64_t kAbsent = -1;
  /// Values of the file's named dimensions (dim_param).
  std::map<std::string, int64_t> dims = {};
  /// Operators that are declared beside the network, by the names of their functions: graph
  /// functions with attribute `op`, "domain::Name" (graph/kernels.h). A node of one becomes a call
  /// of the function; they come before the file's own functions of the same name.
  std::vector<std::pair<std::string, Ref<graph::Function>>> operators = {};
  /// Operators ("ai.onnx::Conv"), and nodes by their names, that become a call of a function each,
  /// whose body is what they mean (node_function.h), so that a kernel may take all of it. Those
  /// that are none by themselves are taken apart like all others.
  std::set<std::string> whole = {}, whole_nodes = {};
  /// Told of what the file says of its values and its nodes contradict.
  std::function<void(const Code& code, const Origin& origin, const std::string& message)> warn = {};
};

/// Reads the network at `path` into a module with the graph function `main`: its parameters are the
/// graph's inputs that are no initialisers, in order; its result is the output, or a tuple of the
/// outputs. Sequences and optionals become tensors (docs/design/0013-sequences.md). Weights are constants that stay in the mapped file. Named dimensions of the inputs are
/// symbolic, one variable for each name; shapes that the network computes itself are resolved, to
/// expressions of these where they depend on them. Attributes "input_names" and "output_names" hold
/// the names that the file uses.
/// \throws CompileError what read_model() throws; kBadModel for a broken graph;
///     kUnsupportedOperator, one diagnostic that lists every node that cannot be imported.
IRModule import_onnx(const std::string& path, const ImportOptions& options = {});
/// The same of a model in memory.
IRModule import_onnx(const NamedBytes& model, const ImportOptions& options = {});
/// The same of a model that was read.
IRModule import_onnx(const Model& model, const ImportOptions& options = {});

}  // namespace tenon::onnx
