// SPDX-License-Identifier: Apache-2.0
// Reduces a model's file while a command on it fails in the same way.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tenon/driver/probe.h"
#include "tenon/ir/module.h"

namespace tenon {

/// A command on a model's file: the words of `arguments`, or `line` for the shell; `{}` in them is
/// the file.
struct FaultCommand {
  std::vector<std::string> arguments;
  std::string line;
  std::string message;  // what it must say too; empty: nothing
  ProbeOptions limits;

  std::string shown(const std::string& file) const;  // for the shell
  Outcome run(const std::string& file) const;
  /// Whether a run ended as `first` did.
  bool shows(const Outcome& first, const Outcome& run) const;
};

struct ReductionRequest {
  std::string model;
  std::string out;  // empty: a name is made of the model's
  FaultCommand command;
  Outcome outcome;  // of the command on the model
  std::function<bool()> out_of_time;
  std::function<void(const std::string&)> progress;
};

struct ReducedFile {
  std::string path;           // a module as TVMScript, an ONNX network, or a text
  std::string before, after;  // "31 functions, 214 bindings, 1,204 statements"
  int64_t runs = 0;
  std::string command;  // that shows the fault again
};

/// As a module where the fault shows after the model was read and printed as TVMScript; else, where
/// reading it is at fault, as a network or a text of its own kind.
/// \throws CompileError (kFileError) where the result cannot be written.
ReducedFile reduce_file(const ReductionRequest& request);

/// "3 functions, 12 bindings, 40 statements".
std::string size_text(const IRModule& module);

}  // namespace tenon
