// SPDX-License-Identifier: Apache-2.0
// Work of the compiler on several threads.
#pragma once

#include <cstddef>
#include <functional>

namespace tenon {

/// Calls f(i) for each i in [0, count), on as many threads as the process has processors. To the
/// caller it is as if one call came after the other: remarks are recorded in the order of i, and the
/// error that is thrown is that of the least i that has one; later ones may have been left out. f
/// must not change what another call reads; it is asked for no interrupt (the caller is, between its
/// own calls).
void for_each_in_parallel(size_t count, const std::function<void(size_t)>& f);

}  // namespace tenon
