// SPDX-License-Identifier: Apache-2.0
// Reads files of kernels of one's own (--kernels, --kernel) and adds them to a model's
// module.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tenon/graph/expr.h"
#include "tenon/support/remarks.h"

namespace tenon {

/// Declared operators by the names of their functions.
using DeclaredOperators = std::vector<std::pair<std::string, Ref<graph::Function>>>;

struct KernelFiles {
  std::vector<std::string> files;    // every annotated kernel in them takes part
  std::vector<std::string> choices;  // OPERATOR=FILE:FUNCTION, NODE=FILE:FUNCTION
  // Given by a program that calls Tenon: as `files`, and as `choices`.
  std::vector<IRModule> modules;
  struct Chosen {
    std::string name;  // of the operator or node
    IRModule module;
    std::string function;
  };
  std::vector<Chosen> chosen;

  bool empty() const {
    return files.empty() && choices.empty() && modules.empty() && chosen.empty();
  }
  /// The operators that the files declare. \throws CompileError what reading them finds.
  DeclaredOperators declared() const;
  /// What of an ONNX network is to stay whole, for a kernel that computes all of it.
  struct Whole {
    std::set<std::string> operators;  // "ai.onnx::Conv"
    std::set<std::string> nodes;
  };
  Whole whole() const;
  /// The module with the kernels of the files, and what these call, beside its own functions.
  /// \throws CompileError what reading the files finds; UsageError at a choice that is malformed or
  /// names no operator, node or function.
  IRModule add_to(IRModule module) const;
  /// Warns (kNotUsed) of each function of --kernel, and each file of --kernels, of which `module`
  /// has kernels and no remark says that one was used: with the nearest reason.
  void warn_of_unused(const IRModule& module, const std::vector<Remark>& remarks) const;

 private:
  /// What `files` and `modules` hold. \throws CompileError what reading the files finds.
  std::vector<IRModule> annotated() const;
  /// One function for an operator or a node, as `choices` and `chosen` state it.
  struct Choice {
    std::string text;  // in messages: "--kernel conv1=mine.py:f"
    std::string name, file, function;
    IRModule module = {};  // that of `file`
  };
  static Choice parse_choice(const std::string& text);
  /// All of them, read.
  std::vector<Choice> read_choices() const;
  static void annotate(IRModule& module, const std::string& name, const Choice& choice,
                       const std::map<std::string, std::string>& names);
};

/// `my_softmax for 3 calls; refused: 1 dtype`, a line for each kernel that was asked about.
std::vector<std::string> kernel_lines(const std::vector<Remark>& remarks);

}  // namespace tenon
