// SPDX-License-Identifier: Apache-2.0
// Memory that the process holds and does not use.
#pragma once

namespace tenon {

/// Gives what the allocator keeps for later back to the system, where it is jemalloc or glibc's: for
/// the end of long work, such as a compilation, after which little is allocated.
void return_free_memory() noexcept;

}  // namespace tenon
