// SPDX-License-Identifier: Apache-2.0
// Random calls of an operator that a kernel of one's own takes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tenon/graph/kernels.h"
#include "tenon/support/random.h"

namespace tenon {

struct KernelSample {
  std::string op;
  std::vector<Ref<graph::Var>> params;  // of the call, tensors of constant shapes
  Ref<graph::Call> call;
  /// What it calls, where that is a node of ONNX or a group; the module does not have it.
  Ref<graph::Function> function;
  Ref<tir::PrimFunc> kernel;                   // for this call
  std::vector<Ref<graph::TensorType>> inputs;  // of the kernel: items of tuples one by one
  size_t outputs = 0;
  std::string text;  // "x float32 (5, 7), axis=-1"
};

/// The name under which a sample calls `function`.
inline constexpr const char* kSampledFunction = "sampled_function";
/// What kernels see of the call.
std::optional<graph::OperatorCall> seen_call(const IRModule& module, const KernelSample& sample);

/// Makes calls from what the kernel declares: its symbolic dimensions get sizes (1, primes, those
/// next to powers of two, one dimension of up to some thousands beside small ones), its scalar
/// parameters values that the attribute may have.
class KernelSampler {
 public:
  /// \param sizes   of symbolic dimensions that are given, by name
  /// \param target  that conditions of programs are asked about; `op_target` is not looked at
  KernelSampler(const IRModule& module, const graph::OperatorKernel& kernel, uint64_t seed,
                const std::map<std::string, int64_t>& sizes = {},
                const std::optional<Target>& target = {});

  bool has_dimensions() const { return !dims_.empty() || !scalars_.empty(); }
  /// A call that the operator allows and the kernel takes; trial 0 is of sizes 1, trial 1 of
  /// primes, the others have one long dimension after the other. Nothing where none was found in
  /// many attempts.
  std::optional<KernelSample> next(int trial);
  int64_t attempts() const { return attempts_; }
  /// Why the calls that were nearest were refused.
  std::string nearest_refusal() const { return nearest_; }
  /// The operator of the last sample.
  const std::string& op() const { return op_; }

 private:
  int64_t pick(const std::vector<int64_t>& from) {
    return from[static_cast<size_t>(random_.bits() % from.size())];
  }
  std::optional<KernelSample> attempt(const std::string& op, int trial, int round);
  std::optional<KernelSample> with_inputs(const std::string& op, const Substitution& sizes,
                                          size_t count, bool as_tuple);
  // Optional inputs of a declared operator that the kernel has no buffers for.
  std::vector<std::string> kernel_left_out(const std::string& op) const;
  // Null where `op` is neither ONNX's nor a pattern.
  Ref<graph::Function> function_of(const std::string& op,
                                   const std::vector<Ref<graph::Var>>& tensors);
  Ref<graph::Call> call_of(const std::string& op, const std::vector<Ref<graph::Var>>& tensors,
                           const Substitution& sizes, bool as_tuple);
  AttrValue attribute(const graph::OpAttr& attr);
  graph::Value scalar_argument(const std::string& name, DType dtype,
                               const AttrValue* otherwise = nullptr);
  int64_t size_of(size_t dim, int trial, int round);
  const AttrValue* pinned(const std::string& name) const;
  bool is_scalar_parameter(const std::string& name) const;
  void refuse(int rank, std::string words);

  const IRModule& module_;
  const graph::OperatorKernel& kernel_;
  graph::OperatorKernel anywhere_;  // the same for any target
  std::optional<Target> target_;
  Random random_;
  const std::map<std::string, int64_t>& sizes_;
  std::vector<Ref<tir::Buffer>> buffers_;
  std::vector<Ref<Var>> scalars_, dims_;
  std::vector<int64_t> divisors_;  // of each dimension, by the kernel's condition
  AttrValue::Map pins_;
  int64_t attempts_ = 0;
  int nearest_rank_ = -1;
  std::string nearest_ = "none was tried", op_;
};

}  // namespace tenon
