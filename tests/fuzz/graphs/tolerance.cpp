// SPDX-License-Identifier: Apache-2.0
#include "tolerance.h"

#include <cstdlib>

#include "tenon/interp/interpreter.h"

namespace tenon::fuzz {

// Quantised numbers are equal; where one lies that close to a tie that rounding decides, it may be
// the one on the other side.
static std::optional<std::string> more_than_a_step(const TensorData& got,
                                                   const TensorData& expected,
                                                   const std::vector<bool>& near_ties) {
  if (got.dtype != expected.dtype || got.shape != expected.shape) return "another type";
  for (int64_t i = 0; i < expected.elements(); ++i) {
    const int64_t apart = std::abs(got.at_int(i) - expected.at_int(i));
    if (apart > (near_ties[static_cast<size_t>(i)] ? 1 : 0))
      return fmt::format("element {} is {}; expected {}{}", i, got.at_int(i), expected.at_int(i),
                         near_ties[static_cast<size_t>(i)] ? " or a step beside it" : "");
  }
  return std::nullopt;
}

// Convolutions, each of which may have a form of its own.
static int convolutions(const IRModule& module) {
  int count = 0;
  for (const auto& [name, function] : module.functions())
    walk<graph::Call>(function, [&](const graph::Call& call) {
      if (call.op)
        count += call.op->name.starts_with("nn.conv2d") || call.op->name.starts_with("nn.conv3d");
    });
  return count;
}

Outputs::Outputs(const Network& network, bool takes_forms)
    : network_(network), takes_forms_(takes_forms) {}

std::optional<std::string> Outputs::wrong(const std::vector<Ref<TensorData>>& got) {
  if (got.size() != network_.outputs.size())
    return fmt::format("{} outputs; expected {}", got.size(), network_.outputs.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const auto apart = difference(*got[i], *network_.outputs[i], Tolerance{});
    if (!apart) continue;
    if (!network_.near_ties[i].empty()) {
      if (const auto wrong = more_than_a_step(*got[i], *network_.outputs[i], network_.near_ties[i]))
        return fmt::format("output {}: {}", i, *wrong);
      continue;
    }
    if (network_.exact[i]) {
      const double forms = takes_forms_ ? 1e-5 * convolutions(network_.module) : 0;
      if (network_.outputs[i]->dtype.is_float() && forms > 0 &&
          !difference(*got[i], *network_.outputs[i], Tolerance{0, 0, forms}))
        continue;
      return fmt::format("output {}: {}", i, *apart);
    }
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
