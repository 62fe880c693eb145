// SPDX-License-Identifier: Apache-2.0
// A program that can be run by the interpreter or as compiled code, behind one interface.
#pragma once

#include <memory>
#include <vector>

#include "tenon/backend/libraries.h"
#include "tenon/driver/signature.h"
#include "tenon/ir/constant.h"
#include "tenon/runtime/program.h"

namespace tenon {

/// The runtime's errors as diagnostics. \throws CompileError (kBadInput, kUnsupported, kRunFailed);
/// InternalError.
[[noreturn]] void rethrow(const runtime::Error& error);

class Executable {
 public:
  virtual ~Executable() = default;
  const Signature& signature() const { return signature_; }

  /// \throws CompileError: kBadInput where the inputs do not fit; kRunFailed and others with what
  /// the program reports.
  std::vector<Ref<TensorData>> run(const std::vector<Ref<TensorData>>& inputs);

 protected:
  explicit Executable(Signature signature) : signature_(std::move(signature)) {}
  virtual std::vector<Ref<TensorData>> execute(const std::vector<Ref<TensorData>>& inputs) = 0;

 private:
  Signature signature_;
};

/// Runs `main` of the module in the interpreter; extern functions without a reference body are
/// called in `libraries`. `rounding_seed`: as interp::Options has it.
std::unique_ptr<Executable> interpreted(const IRModule& module,
                                        std::shared_ptr<const backend::Libraries> libraries = {},
                                        uint64_t rounding_seed = 0);
std::unique_ptr<Executable> compiled(std::shared_ptr<runtime::Program> program);

/// A compiled program with its inputs and outputs in place, to be run again and again.
class BoundRun {
 public:
  /// \throws CompileError (kBadInput, kRunFailed)
  BoundRun(std::shared_ptr<runtime::Program> program, const std::vector<Ref<TensorData>>& inputs);
  /// Runs once; returns the seconds that it took. \throws CompileError (kRunFailed).
  double run();
  std::vector<Ref<TensorData>> outputs() const;
  int64_t workspace_bytes() const { return workspace_bytes_; }
  const std::vector<runtime::Tensor>& inputs() const { return inputs_; }
  BoundRun(const BoundRun&) = delete;
  BoundRun& operator=(const BoundRun&) = delete;
  ~BoundRun();
  const std::vector<std::vector<int64_t>>& output_shapes() const { return output_shapes_; }

 private:
  double run_late(const std::vector<const DLTensor*>& inputs);

  void release_strings();
  std::shared_ptr<runtime::Program> program_;
  Signature signature_;
  std::vector<runtime::Tensor> inputs_, outputs_;
  bool is_late_ = false;  // an output has dimensions that only a run knows
  std::vector<std::vector<int64_t>> output_shapes_;  // changed by a run where they depend on data
  std::vector<DLTensor> input_views_, output_views_;
  int64_t workspace_bytes_ = 0;
};

}  // namespace tenon
