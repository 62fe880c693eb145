// SPDX-License-Identifier: Apache-2.0
// A small count of random modules of TensorIR; fuzz_tir runs as many as one likes.
#include <gtest/gtest.h>

#include "program_case.h"

namespace tenon::fuzz {
namespace {

TEST(RandomPrograms, ComputeTheSameInEveryWay) {
  ProgramCounts counts;
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    const auto fault = run_program(program_text(seed), &counts);
    ASSERT_FALSE(fault) << "fuzz_tir --kind programs --count 1 --seed " << seed << "\n"
                        << fault->kind << "\n"
                        << fault->detail;
  }
  EXPECT_GE(counts.compiled, 24);
}

}  // namespace
}  // namespace tenon::fuzz
