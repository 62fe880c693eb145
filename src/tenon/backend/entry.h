// SPDX-License-Identifier: Apache-2.0
// Inputs and outputs of a program, read from its entry function for all code generators.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "tenon/tir/shared_buffers.h"

namespace tenon::backend {

/// Bytes that the address of every buffer of a program is a multiple of at least.
inline constexpr int64_t kLeastAlignment = 64;

/// A number known only at run time, and where it is read from: a dimension of an input, or an
/// element of one.
struct EntrySymbol {
  Ref<Var> var;
  size_t input = 0;
  int64_t index = 0;
  bool is_element = false;
};

/// The entry function of a lowered module (attribute `tenon.entry`).
struct Entry {
  std::string name;
  Ref<tir::PrimFunc> function;
  size_t inputs = 0, outputs = 0;
  bool has_host_memory = false;  // is given some while it runs, for outputs or as workspace
  bool has_workspace = false;
  std::vector<std::string> input_names, output_names;  // as many
  std::vector<Ref<tir::Buffer>> output_buffers;
  std::vector<bool> is_late_output;
  std::vector<tir::SharedBuffer> shared;  // outputs in the memory of an input
  std::vector<EntrySymbol> symbols;       // those of tir::symbolic_vars, then scalar parameters
  /// What has to hold of the symbols where some are elements of inputs, which may be anything:
  /// checked before sizes follow from them.
  std::vector<Ref<tir::Assert>> given_checks;
  Expr workspace_bytes;  // int64; over the symbols
  /// TenonProgram.asked_by; empty where every size is a number.
  std::vector<std::string> asked_by;
  int64_t workspace_alignment = 64;  // bytes, as its buffer declares it
  /// Bytes that library functions need the address of each input and output to be a multiple of.
  std::vector<int64_t> alignments;
  bool checks_workspace = false;  // a library function asks for an alignment in it

  /// Whether a library function asks for an alignment of memory that the caller hands over.
  bool checks_addresses() const {
    return checks_workspace || std::any_of(alignments.begin(), alignments.end(),
                                           [](int64_t alignment) { return alignment > 1; });
  }
  /// What TenonTensorInfo says of buffer `i`, an input or an output, in a program whose other
  /// memory has `alignment`: 0 where that is enough said.
  int64_t stated_alignment(size_t i, int64_t alignment) const {
    const int64_t needed = std::max(kLeastAlignment, alignments[i]);
    return needed == alignment ? 0 : needed;
  }
  const tir::Buffer& input(size_t i) const { return *function->buffers[i]; }
  const tir::Buffer& output(size_t i) const { return *output_buffers[i]; }
  /// Whether the size of output `i` is known only when part of the program has run: it is no
  /// parameter of the function.
  bool is_late(size_t i) const { return is_late_output[i]; }
  /// TenonTensorInfo.flags of output `i`.
  uint32_t output_flags(size_t i) const;
  /// An attribute that is an integer or an expression: 0 where it is absent, nothing where it is
  /// no number.
  std::optional<int64_t> number(const char* attribute) const;
};

/// \throws CompileError kWrongForm where there is none, several, or it has scalar parameters of
/// no stated source; kUnsupported where an input's dimension is neither a number nor a name, or a symbol follows from
/// no input.
Entry entry_of(const IRModule& module);

}  // namespace tenon::backend
