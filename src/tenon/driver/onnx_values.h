// SPDX-License-Identifier: Apache-2.0
// Sequences and optionals between the values of an ONNX network and the tensors of its program
// (docs/design/0013-sequences.md).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tenon/driver/signature.h"
#include "tenon/import/onnx/model.h"
#include "tenon/ir/constant.h"

namespace tenon {

/// A tensor, the tensors of a sequence, or nothing where an optional is absent.
using OnnxValue = std::optional<std::vector<Ref<TensorData>>>;

/// "x=3" and "x=none" of --length, each. \throws UsageError at anything else.
std::map<std::string, int64_t> parse_lengths(const std::vector<std::string>& texts);

/// What inputs of a network hold: tensors by the names that its program has for them, and what is
/// said of them when it is compiled.
struct OnnxInputs {
  std::vector<std::string> lengths, shapes;  // as --length and --shape have them
  std::map<std::string, Ref<TensorData>> tensors;
  std::map<std::string, size_t> ranks;  // of tensors of which the file declares none

  /// \param value  of an input of `info`, which is no tensor
  void add(const onnx::ValueInfo& info, const OnnxValue& value);
};

/// Takes what `files` (by names of inputs) has for inputs of the network at `path` that are sequences
/// or optionals: `NAME[0]`, `NAME[1]`, ..., a tensor each, or one ONNX `.pb` file of NAME.
OnnxInputs take_sequences(const std::string& path, std::map<std::string, std::string>& files);

/// Of a program's outputs, those of each output of the network, with those that are packed unpacked.
/// \throws CompileError (kWrongForm) where they are not the network's.
std::vector<OnnxValue> grouped(const std::vector<onnx::ValueInfo>& outputs,
                               const Signature& signature,
                               const std::vector<Ref<TensorData>>& tensors);

}  // namespace tenon
