// SPDX-License-Identifier: Apache-2.0
// Runs a program in the interpreter before and after a pass and compares what it computes.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "tenon/backend/libraries.h"
#include "tenon/driver/expectation.h"
#include "tenon/interp/interpreter.h"
#include "tenon/ir/constant.h"
#include "tenon/ir/pass.h"

namespace tenon {

/// The libraries in which the functions are that a module calls.
using LibrariesOf = std::function<std::shared_ptr<const backend::Libraries>(const IRModule&)>;

class Validator {
 public:
  /// \param libraries  where it is given, foreign functions without a reference body are called
  ///                   there; without it, in what the module brings that this process made
  /// \param seed       of the random inputs
  explicit Validator(LibrariesOf libraries = {}, uint64_t seed = 0);

  /// Runs `main` of both modules on the same inputs; also each function that nothing calls, and
  /// where a module has no `main` each function that the pass changed: PrimFuncs on tensors for all
  /// of their parameters. A warning (kFunctionNotCompared) names one of these that cannot be run.
  /// What a pass left as it was is not interpreted again (interp/call_memo.h).
  /// \throws InternalError where they differ (bit for bit after an exact pass, by more than
  /// rounding explains after another: expectation.h), or where only the second fails: it names the
  /// pass, the output and the first wrong element. CompileError: kWrongResult where it is a user's
  /// kernel that differs, kNotCompared where `main` cannot be compared.
  void compare(const Pass& pass, const IRModule& before, const IRModule& after);

  /// How much of that was not known before.
  const interp::CallMemo& memo() const { return *memo_; }

 private:
  using Outputs = std::vector<Ref<TensorData>>;
  interp::Options options_for(const IRModule& module, uint64_t rounding_seed);
  Outputs run(const IRModule& module, const Outputs& inputs, uint64_t rounding_seed = 0);
  Expectation expect(const IRModule& module);

  void compare_programs(const Pass& pass, const IRModule& before, const IRModule& after);
  void compare_main(const Pass& pass, const IRModule& before, const IRModule& after);
  void compare_functions(const Pass& pass, const IRModule& before, const IRModule& after,
                         bool has_main);
  void compare_kernels(const Pass& pass, const IRModule& before, const IRModule& after,
                       const std::string& name);
  // Runs what the pass gave and compares it; gives what the next pass has to keep to.
  static Expectation check_outputs(const Pass& pass, Expectation& expected, const Rerun& run,
                                   int64_t terms, const char* what, const std::string& where);

  LibrariesOf libraries_;
  bool has_watched_ = false;  // parallel loops that are not proved free of races
  uint64_t seed_;
  std::shared_ptr<interp::CallMemo> memo_;
  std::shared_ptr<const backend::Libraries> opened_;  // what the callers below call
  interp::CallLibrary call_library_;
  interp::CallOpaque call_opaque_;
  Outputs inputs_;
  std::optional<Expectation> last_;  // of the module that the next comparison is before
};

}  // namespace tenon
