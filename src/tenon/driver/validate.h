// Runs a program in the interpreter before and after a pass and compares what it computes.
#pragma once

#include <optional>
#include <vector>

#include "tenon/driver/signature.h"
#include "tenon/ir/constant.h"
#include "tenon/ir/pass.h"

namespace tenon {

class Validator {
 public:
  /// \param seed  of the random inputs
  explicit Validator(uint64_t seed = 0) : seed_(seed) {}

  /// Runs `main` of both modules on the same inputs. Modules without `main` pass.
  /// \throws InternalError where they differ (bit for bit after an exact pass, within the tolerance
  /// of re-associated float32 sums after another), or where only the second fails: it names the
  /// pass, the output and the first wrong element. CompileError (kWrongResult) where it is a user's
  /// kernel that differs.
  void compare(const Pass& pass, const IRModule& before, const IRModule& after);

 private:
  using Outputs = std::vector<Ref<TensorData>>;
  Outputs run(const IRModule& module);

  uint64_t seed_;
  std::optional<Outputs> last_;  // of the module that the next comparison is before
};

}  // namespace tenon
