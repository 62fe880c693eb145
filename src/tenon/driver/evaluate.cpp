#include "tenon/driver/evaluate.h"

#include "tenon/interp/interpreter.h"
#include "tenon/interp/reference/reference.h"

namespace tenon {

// Scalar code that one folded call may cost, about a minute's worth: beyond it the call is left to
// the program.
static constexpr int64_t kMostSteps = int64_t{2} << 30;

std::optional<graph::Value> evaluate_constant(const IRModule& module,
                                              const Ref<graph::Call>& call) {
  if (Ref<TensorData> value = interp::reference_value(*call))
    return graph::Value(make<graph::Constant>(std::move(value), call->origin));
  try {
    return interp::Interpreter(module, {.step_limit = kMostSteps}).evaluate_call(call);
  } catch (const CompileError& error) {
    // What fails when it runs (a division by zero, an index out of range) may never run.
    const std::string_view id = error.first().code.id;
    if (id == kLimitExceeded.id || id == kRunFailed.id || id == kUnsupported.id ||
        id == kOutOfBounds.id)
      return std::nullopt;
    throw;
  }
}

}  // namespace tenon
