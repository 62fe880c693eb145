// SPDX-License-Identifier: Apache-2.0
// Checks the caller's arguments against a program's declaration.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tenon/runtime/abi.h"
#include "tenon/runtime/tensor.h"

namespace tenon::runtime {

/// A shape as declared: "(1, 3, n, m)"; "?" for what is computed at run time.
std::string declared_shape(const TenonProgram& program, const TenonTensorInfo& tensor);

inline DLDataType declared_dtype(const TenonTensorInfo& tensor) {
  return {tensor.code, tensor.bits, tensor.lanes};
}

/// The input whose memory an output shares: its contents are there when the program begins.
inline std::optional<size_t> shared_input(const TenonTensorInfo& tensor) {
  if ((tensor.flags & TENON_TENSOR_IN_PLACE) == 0) return std::nullopt;
  return TENON_TENSOR_INPUT(tensor.flags);
}
/// Whether its dimensions are known only when part of the program has run.
inline bool is_late(const TenonTensorInfo& tensor) {
  return (tensor.flags & TENON_TENSOR_LATE) != 0;
}

/// Checks the declaration itself: counts, pointers, references between its parts.
/// \throws Error (TENON_ERROR_LOAD)
void check_declaration(const TenonProgram& program);

/// Checks the inputs (number, device, dtype, rank, constant dimensions, packed layout, data), reads
/// the symbols from them, checks these against their bounds and every other dimension that names
/// one. Returns the symbols' values.
/// \throws Error (TENON_ERROR_ARGUMENT) that names the input and shows both sides
std::vector<int64_t> check_inputs(const TenonProgram& program,
                                  std::span<const DLTensor* const> inputs);

/// Checks values of the symbols against their number and bounds.
/// \throws Error (TENON_ERROR_ARGUMENT)
void check_symbols(const TenonProgram& program, std::span<const int64_t> symbols);

/// Checks the caller's outputs likewise against the dimensions of all outputs, concatenated, and
/// that none overlaps another output or an input.
/// \throws Error (TENON_ERROR_ARGUMENT)
void check_outputs(const TenonProgram& program, std::span<const DLTensor* const> inputs,
                   std::span<const DLTensor* const> outputs, std::span<const int64_t> output_dims);

}  // namespace tenon::runtime
