// SPDX-License-Identifier: Apache-2.0
#include "tenon/memory/problem.h"

#include <bit>

#include "tenon/support/diagnostics.h"

namespace tenon::memory {

static void validate_buffer(const Problem& problem, const Allocation& b) {
  if (b.bytes < 0)
    throw CompileError(kBadProblem, b.origin, "buffer `{}` has a size of {} bytes", b.name,
                       b.bytes);
  if (b.lower < 0)
    throw CompileError(kBadProblem, b.origin, "buffer `{}` is alive from the negative step {}",
                       b.name, b.lower);
  if (b.lower >= b.upper)
    throw CompileError(kBadProblem, b.origin,
                       "buffer `{}` is alive from step {} until before step {}, which is never",
                       b.name, b.lower, b.upper);
  if (b.alignment < 1 || b.alignment > kMaxAlignment ||
      !std::has_single_bit(static_cast<uint64_t>(b.alignment)))
    throw CompileError(kBadProblem, b.origin,
                       "buffer `{}` has alignment {}; it must be a power of two up to {}", b.name,
                       b.alignment, kMaxAlignment);
  if (b.pool < 0 || static_cast<size_t>(b.pool) >= problem.pools.size())
    throw CompileError(kBadProblem, b.origin, "buffer `{}` is in pool {}, but there are {} pools",
                       b.name, b.pool, problem.pools.size());
}

void validate(const Problem& problem) {
  if (problem.buffers.size() > static_cast<size_t>(kMaxBuffers))
    throw CompileError(kLimitExceeded, {}, "{} buffers; at most {} can be planned",
                       problem.buffers.size(), kMaxBuffers);
  for (const Pool& pool : problem.pools)
    if (pool.capacity && *pool.capacity < 0)
      throw CompileError(kBadProblem, {}, "pool `{}` has a capacity of {} bytes", pool.name,
                         *pool.capacity);
  int64_t total = 0;
  for (const Allocation& b : problem.buffers) {
    validate_buffer(problem, b);
    if (b.bytes > kMaxTotalBytes - b.alignment - total)
      throw CompileError(kBadProblem, b.origin,
                         "with the {} bytes of buffer `{}` the sizes overflow: together they are "
                         "more than {} bytes",
                         b.bytes, b.name, kMaxTotalBytes);
    total += b.bytes + b.alignment;
  }
}

}  // namespace tenon::memory
