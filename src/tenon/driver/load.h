// SPDX-License-Identifier: Apache-2.0
// Loads models of every kind from their files.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tenon/driver/kernel_files.h"
#include "tenon/ir/module.h"
#include "tenon/script/constants.h"
#include "tenon/support/mapped_file.h"

namespace tenon {

enum class ModelKind : uint8_t {
  kOnnx,      // .onnx
  kScript,    // .py, .tvmscript
  kRelay,     // .relay
  kCompiled,  // .so
};

/// By the name's ending. \throws CompileError kFileError at any other.
ModelKind kind_of(const std::string& path);
/// By what a file would hold: text of TVMScript or Relay, a compiled program, else an ONNX network.
ModelKind kind_of(std::span<const std::byte> contents);

struct LoadOptions {
  /// Files with values of the parameters of a .relay module, as relay.save_param_dict writes them;
  /// where two hold one name, the later counts.
  std::vector<std::string> params = {};
  /// The same as values; a file of `params` counts where it holds the name too. Of an .onnx network,
  /// values of inputs, which become constants.
  std::map<std::string, Ref<TensorData>> values = {};
  /// Operators that are declared beside the model: what an .onnx network may call.
  DeclaredOperators operators = {};
  /// What of an .onnx network their kernels may compute as a whole.
  KernelFiles::Whole whole = {};
  /// Lengths of inputs of an .onnx network that are sequences or optionals (onnx::ImportOptions).
  std::map<std::string, int64_t> lengths = {};
  /// Shapes of inputs of an .onnx network; -1 leaves a dimension to the file.
  std::map<std::string, std::vector<int64_t>> shapes = {};
  /// Says ranks of inputs of an .onnx network, where neither it nor `shapes` says them.
  std::function<std::optional<size_t>(const std::string& input)> rank_of = {};
};

/// Imports or parses a model, and verifies it. Constants that a script refers to are read from
/// `path` + ".constants" where that exists.
/// \throws CompileError what the importer, the parser and the verifier find; kUnsupported for a
/// compiled program, which holds no module; kBadOption for parameters or shapes of another kind of
/// model.
IRModule load_module(const std::string& path, const LoadOptions& options = {});

/// The same of a model in memory. `constants`: those that a script refers to; may be null.
IRModule load_module(ModelKind kind, const NamedBytes& model, const LoadOptions& options = {},
                     const script::ConstantStore* constants = nullptr);

/// Writes a module as TVMScript, and the constants that the text refers to, where there are any, to
/// `path` + ".constants". \throws CompileError (kFileError).
void write_module(const IRModule& module, const std::string& path);

}  // namespace tenon
