// SPDX-License-Identifier: Apache-2.0
// Tensors of the command line: read from files, made up from a seed, described in words.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tenon/driver/random_values.h"
#include "tenon/driver/signature.h"
#include "tenon/ir/constant.h"
#include "tenon/runtime/tensor.h"

namespace tenon {

/// Reads `.npy` or ONNX `.pb`. \throws CompileError kFileError, kBadTensor, kBadModel,
/// kUnsupported.
Ref<TensorData> read_tensor(const std::string& path);

/// Values of Values::kUniform.
Ref<TensorData> random_tensor(DType dtype, std::vector<int64_t> shape, uint64_t seed);

/// What symbols of dimensions are without a value given.
inline constexpr int64_t kDefaultDim = 4;

/// "batch=4" of --dim, each. \throws UsageError at anything else.
std::map<std::string, int64_t> parse_dims(const std::vector<std::string>& texts);

/// "x=x.npy" of --input, each, split at the first `=`. \throws UsageError at anything else, and at
/// a name that is given twice.
std::map<std::string, std::string> parse_input_files(const std::vector<std::string>& texts);

struct InputOptions {
  std::map<std::string, std::string> files;             // by name of the input
  std::map<std::string, Ref<TensorData>> tensors = {};  // the same, read already
  std::map<std::string, int64_t> dims;                  // values of symbols, for inputs not given
  uint64_t seed = 0;
  std::map<std::string, InputMeaning> meanings = {};  // by name; inputs without one are any values
  Values values = Values::kUniform;
};

/// What the inputs of `main` are for, by the names that they have in its signature; empty where it
/// has none.
std::map<std::string, InputMeaning> named_meanings(const IRModule& module);

/// What random elements of an input may be, for values of the symbols in its extent.
RandomRange range_of(const InputMeaning& meaning, const std::map<std::string, int64_t>& symbols,
                     Values values);

/// A tensor for each input, checked against its port; symbols agree between them.
/// \throws CompileError (kBadInput) with both sides; UsageError at a dimension that has no symbol.
std::vector<Ref<TensorData>> make_inputs(const Signature& signature, const InputOptions& options);

/// \throws CompileError (kBadInput) where the tensors do not fit the ports or disagree on a symbol.
/// Returns the symbols' values.
std::map<std::string, int64_t> check_inputs(const Signature& signature,
                                            const std::vector<Ref<TensorData>>& inputs);

struct TensorSummary {
  double min = 0, mean = 0, max = 0;  // of what is not NaN
  int64_t nan = 0;                    // how many are
  std::vector<double> first;          // at most 6
};
TensorSummary summarise(const TensorData& tensor);

/// `logits  float32 (1, 1000)  min -2.1  mean 0.01  max 3.4  [0.1, 0.2, ...]`.
std::string summary_line(const std::string& name, const TensorData& tensor, size_t name_width);

DLDataType dlpack_dtype(DType dtype);
/// A copy in memory that is aligned as programs like it.
runtime::Tensor to_runtime(const TensorData& tensor);
/// A copy.
Ref<TensorData> from_runtime(const runtime::Tensor& tensor, DType dtype);
/// On the tensor's own memory, which nobody may write afterwards; of strings a copy.
Ref<TensorData> taken_over(const runtime::Tensor& tensor, DType dtype);

}  // namespace tenon
