// SPDX-License-Identifier: Apache-2.0
#include "tolerance.h"

#include "tenon/interp/interpreter.h"

namespace tenon::fuzz {

Outputs::Outputs(const Network& network) : network_(network) {}

std::optional<std::string> Outputs::wrong(const std::vector<Ref<TensorData>>& got) {
  if (got.size() != network_.outputs.size())
    return fmt::format("{} outputs; expected {}", got.size(), network_.outputs.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const auto apart = difference(*got[i], *network_.outputs[i], Tolerance{});
    if (!apart) continue;
    if (network_.exact[i]) return fmt::format("output {}: {}", i, *apart);
    if (!expectation_)
      expectation_.emplace(network_.outputs, longest_sum(network_.module), [&](uint64_t seed) {
        interp::Options options;
        options.rounding_seed = seed;
        return interp::Interpreter(network_.module, std::move(options)).run_main(network_.inputs);
      });
    if (const auto wrong = expectation_->mismatch(i, *got[i]))
      return fmt::format("output {}: {}", i, wrong->text);
  }
  return std::nullopt;
}

}  // namespace tenon::fuzz
