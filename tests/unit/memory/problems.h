// SPDX-License-Identifier: Apache-2.0
// Memory planning problems that several tests use.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <string>

#include "tenon/memory/csv.h"
#include "tenon/support/diagnostics.h"

namespace tenon::memory {

inline Allocation buffer(std::string name, int64_t lower, int64_t upper, int64_t bytes,
                         int64_t alignment = 1) {
  return {std::move(name), bytes, alignment, lower, upper, 0, {}};
}

struct RandomProblem {
  int buffers, steps, greatest_life;
  int64_t greatest_size;
  int greatest_alignment_log2 = 0;
  int pools = 1;
};

inline Problem random_problem(const RandomProblem& shape, uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
  Problem problem;
  problem.pools.resize(shape.pools);
  for (int i = 0; i < shape.buffers; ++i) {
    const int64_t lower = below(shape.steps);
    Allocation b = buffer("b" + std::to_string(i), lower, lower + 1 + below(shape.greatest_life),
                          below(shape.greatest_size + 1));
    b.alignment = int64_t{1} << below(shape.greatest_alignment_log2 + 1);
    b.pool = static_cast<int>(below(shape.pools));
    problem.buffers.push_back(std::move(b));
  }
  return problem;
}

/// The code and message of what `f` throws.
template <typename F>
std::string error_of(const F& f) {
  try {
    f();
  } catch (const CompileError& error) {
    const Diagnostic& first = error.first();
    const std::string place = first.origin ? ":" + std::to_string(first.origin->line) : "";
    return std::string(first.code.name) + place + ": " + first.message;
  }
  return "no error";
}

}  // namespace tenon::memory
