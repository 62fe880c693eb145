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

  /// Runs `main` of both modules on the same inputs. Modules without `main` pass.
  /// \throws InternalError where they differ (bit for bit after an exact pass, by more than
  /// rounding explains after another: expectation.h), or where only the second fails: it names the
  /// pass, the output and the first wrong element. CompileError (kWrongResult) where it is a user's
  /// kernel that differs.
  void compare(const Pass& pass, const IRModule& before, const IRModule& after);

 private:
  using Outputs = std::vector<Ref<TensorData>>;
  Outputs run(const IRModule& module, uint64_t rounding_seed);
  Expectation expect(const IRModule& module, Outputs outputs);

  uint64_t seed_;
  Outputs inputs_;
  std::optional<Expectation> last_;  // of the module that the next comparison is before
};

}  // namespace tenon
