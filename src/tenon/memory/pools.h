// SPDX-License-Identifier: Apache-2.0
// Several memory pools: the user's options, and the pool that each buffer goes to.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/memory/plan.h"

namespace tenon::memory {

/// A pool as the user states it. Buffers go to the first that has room, in the order given.
struct PoolOption {
  std::string name;
  std::optional<int64_t> capacity;  // bytes; unlimited where not set
  bool is_read_only = false;        // for constants
  bool operator==(const PoolOption&) const = default;
};

/// Reads "sram=64KiB dram flash=ro", separated by spaces: NAME, NAME=SIZE, NAME=ro or NAME=SIZE,ro,
/// where SIZE is a number of bytes or has one of the endings KiB, MiB, GiB.
/// \throws CompileError (kBadOption) at anything else, at two pools of one name, at more than one
/// read-only pool.
std::vector<PoolOption> parse_pools(std::string_view text);

/// The pools of options "sram=64KiB", in order, for buffers that are written.
/// \throws CompileError (kBadOption) also at a read-only one
std::vector<Pool> writable_pools(std::span<const std::string> options);

/// Chooses a pool for each buffer, and its place there. All start in the first pool; what does not
/// fit goes to the next: at the step where most is missing the smallest buffer that makes enough
/// room, else the largest, until a plan fits; then those that fit after all come back. So the
/// bytes that are accessed in slower memory are few. `problem.pools` are in order of preference;
/// the pools of its buffers are ignored, and written.
///
/// \throws CompileError (kDoesNotFit): where the last pool is too small too, with the step, the
/// bytes that are missing and the largest buffers alive there.
Plan plan_pools(Problem& problem, const PlanOptions& options = {});

}  // namespace tenon::memory
