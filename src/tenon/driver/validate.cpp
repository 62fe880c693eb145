#include "tenon/driver/validate.h"

#include "tenon/driver/compiler.h"
#include "tenon/driver/library_call.h"
#include "tenon/driver/signature.h"
#include "tenon/driver/tensors.h"
#include "tenon/graph/kernels.h"
#include "tenon/interp/interpreter.h"
#include "tenon/support/kernel_codes.h"

namespace tenon {

Validator::Outputs Validator::run(const IRModule& module, uint64_t rounding_seed) {
  interp::Options options;
  options.rounding_seed = rounding_seed;
  if (module.attrs.contains("external_mods"))
    options.call_library = library_caller(open_libraries(module, {}));
  return interp::Interpreter(module, std::move(options)).run_main(inputs_);
}

Expectation Validator::expect(const IRModule& module, Outputs outputs) {
  return {std::move(outputs), longest_sum(module),
          [this, module](uint64_t seed) { return run(module, seed); }};
}

// A pass that had nothing to do leaves every function the same node.
static bool same_functions(const IRModule& a, const IRModule& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [name, function] : a.functions())
    if (!b.find(name).same_as(function)) return false;
  return true;
}

// Another signature is another program: there is nothing to compare.
static bool same_inputs(const IRModule& a, const IRModule& b) {
  const std::vector<Port> x = signature_of(a).inputs, y = signature_of(b).inputs;
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const Port& p, const Port& q) {
    return p.name == q.name && p.str() == q.str();
  });
}

void Validator::compare(const Pass& pass, const IRModule& before, const IRModule& after) {
  if (!before.contains("main") || !after.contains("main")) return;
  if (same_functions(before, after)) return;
  if (!same_inputs(before, after)) {
    last_.reset();
    return;
  }
  if (!last_) {
    InputOptions options;
    options.seed = seed_;
    options.meanings = named_meanings(before);
    options.values = Values::kScales;
    inputs_ = make_inputs(signature_of(before), options);
    last_ = expect(before, run(before, 0));
  }
  Outputs outputs;
  try {
    outputs = run(after, 0);
  } catch (const CompileError& error) {
    throw InternalError(
        fmt::format("`{}` changed the program: it ran before the pass and fails "
                    "after it:\n{}",
                    pass.name, error.what()));
  }
  if (outputs.size() != last_->outputs().size())
    throw InternalError(fmt::format("`{}` changed the number of outputs from {} to {}", pass.name,
                                    last_->outputs().size(), outputs.size()));
  Expectation next = expect(after, outputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::optional<std::string> wrong;
    if (pass.precision == Precision::kExact)
      wrong = exact_difference(*outputs[i], *last_->outputs()[i]);
    else if (const auto found = last_->mismatch(i, *outputs[i], &next))
      wrong = found->text;
    if (wrong && pass.name == graph::kSelectKernels)
      throw CompileError(kWrongResult, {},
                         "kernels of your own compute something else than their operators: output "
                         "{} {}; `tenon check --kernels` says where",
                         i, *wrong);
    if (wrong)
      throw InternalError(fmt::format("`{}` changed what the program computes: output {} {}",
                                      pass.name, i, *wrong));
  }
  last_ = std::move(next);
}

}  // namespace tenon
