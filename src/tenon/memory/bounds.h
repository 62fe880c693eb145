// SPDX-License-Identifier: Apache-2.0
// A lower bound on the memory of any plan: the bytes alive at each step.
#pragma once

#include <vector>

#include "tenon/memory/problem.h"

namespace tenon::memory {

/// The bytes alive from one step on until the next entry of a profile.
struct Load {
  int64_t step = 0;
  int64_t bytes = 0;
  bool operator==(const Load&) const = default;
};

/// The bytes of the buffers of one pool that are alive, an entry wherever they change, by rising
/// step; the last entry has 0 bytes. Bytes are what no plan can go below at that step: offsets are
/// multiples of the least alignment in the pool, so each buffer but the topmost takes its size
/// rounded up to that. Problem: valid.
std::vector<Load> load_profile(const Problem& problem, int pool);

/// The first step with the greatest load: the lower bound of every plan of this pool; {0, 0} where
/// the pool is empty.
Load lower_bound(const Problem& problem, int pool);

}  // namespace tenon::memory
