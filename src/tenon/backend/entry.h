// What a program takes and gives, read from its entry function: the same for every back end.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tenon/tir/stmt.h"

namespace tenon::backend {

/// A dimension known only at run time, and where it is read from.
struct EntrySymbol {
  Ref<Var> var;
  size_t input = 0, dim = 0;
};

/// The entry function of a lowered module (attribute `tenon.entry`).
struct Entry {
  std::string name;
  Ref<tir::PrimFunc> function;
  size_t inputs = 0, outputs = 0;  // its first buffers; the workspace, where there is one, is last
  bool has_workspace = false;
  std::vector<std::string> input_names, output_names;  // as many
  std::vector<EntrySymbol> symbols;                    // those of tir::symbolic_vars
  Expr workspace_bytes;                                // int64; over the symbols

  const tir::Buffer& input(size_t i) const { return *function->buffers[i]; }
  const tir::Buffer& output(size_t i) const { return *function->buffers[inputs + i]; }
  /// An attribute that is an integer or an expression: 0 where it is absent, nothing where it is
  /// no number.
  std::optional<int64_t> number(const char* attribute) const;
};

/// \throws CompileError kWrongForm where there is none, several, or it has scalar parameters;
/// kUnsupported where an input's dimension is neither a number nor a name, or a symbol follows from
/// no input.
Entry entry_of(const IRModule& module);

}  // namespace tenon::backend
