// SPDX-License-Identifier: Apache-2.0
// The static memory planning problem: buffers of known size and life, to be placed in pools.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tenon/support/origin.h"

namespace tenon::memory {

/// The most buffers of one problem.
inline constexpr int64_t kMaxBuffers = 1 << 21;
/// The most bytes that the buffers of one problem may have together, each with its padding: sums of
/// offsets and sizes stay far from the end of 64 bits.
inline constexpr int64_t kMaxTotalBytes = int64_t{1} << 60;
inline constexpr int64_t kMaxAlignment = int64_t{1} << 30;

/// A buffer to be placed. Two buffers conflict where both are alive at one step.
struct Allocation {
  std::string name;
  int64_t bytes = 0;             // 0 is allowed: it conflicts with nothing
  int64_t alignment = 1;         // its offset is a multiple of this; a power of two
  int64_t lower = 0, upper = 0;  // alive at the steps lower <= t < upper; lower >= 0
  int pool = 0;                  // index into Problem::pools
  Origin origin = {};            // for messages
};

/// A range of addresses that starts at 0, aligned for every buffer in it.
struct Pool {
  std::string name = "workspace";
  std::optional<int64_t> capacity = {};  // bytes; unlimited where not set
};

struct Problem {
  std::vector<Allocation> buffers;
  std::vector<Pool> pools = {Pool{}};
};

/// \throws CompileError: kBadProblem at the first buffer or pool that is malformed (negative size
/// or step, an empty life, an alignment that is no power of two, a pool that does not exist, sizes
/// that overflow); kLimitExceeded beyond kMaxBuffers.
void validate(const Problem& problem);

/// The least multiple of `alignment` (a power of two) that is >= `value`.
constexpr int64_t align_up(int64_t value, int64_t alignment) {
  return (value + alignment - 1) & -alignment;
}

}  // namespace tenon::memory
