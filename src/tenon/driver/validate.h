// Runs a program in the interpreter before and after a pass and compares what it computes.
#pragma once

#include <optional>
#include <vector>

#include "tenon/driver/expectation.h"
#include "tenon/ir/constant.h"
#include "tenon/ir/pass.h"

namespace tenon {

class Validator {
 public:
  /// \param seed  of the random inputs
  explicit Validator(uint64_t seed = 0) : seed_(seed) {}

  /// Runs `main` of both modules on the same inputs; where a module has none that takes inputs,
  /// each function that the pass changed, PrimFuncs on tensors for all of their parameters. A
  /// warning says what cannot be compared, and why.
  /// \throws InternalError where they differ (bit for bit after an exact pass, by more than
  /// rounding explains after another: expectation.h), or where only the second fails: it names the
  /// pass, the output and the first wrong element. CompileError (kWrongResult) where it is a user's
  /// kernel that differs.
  void compare(const Pass& pass, const IRModule& before, const IRModule& after);

 private:
  using Outputs = std::vector<Ref<TensorData>>;
  Outputs run(const IRModule& module, uint64_t rounding_seed);
  void compare_programs(const Pass& pass, const IRModule& before, const IRModule& after);
  void compare_kernels(const Pass& pass, const IRModule& before, const IRModule& after,
                       const std::string& name);
  // Runs what the pass gave and compares it; gives what the next pass has to keep to.
  static Expectation check_outputs(const Pass& pass, Expectation& expected, const Rerun& run,
                                   int64_t terms, const char* what, const std::string& where);
  Expectation expect(const IRModule& module, Outputs outputs);

  uint64_t seed_;
  Outputs inputs_;
  std::optional<Expectation> last_;  // of the module that the next comparison is before
};

}  // namespace tenon
