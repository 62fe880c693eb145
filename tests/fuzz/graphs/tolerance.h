// How far a program's numbers may lie from the interpreter's. In one place, with the reasons.
//
// Exact: what no rounding touched (integers, bools, moved and selected elements, sums and products
// of numbers on a coarse grid) is compared bit for bit, zeros of either sign apart.
//
// Rounded: compilers may sum in another order, use a fused multiply-add, and fold constant factors
// into weights. What that does to a result depends on the whole network behind it (a difference
// of nearly equal numbers, a steep function), so no fixed tolerance is both safe and sharp. Here
// the network itself says it: the reference is evaluated again with every rounded value off by a
// few units in its last place, at random, and a program may be as far away as these runs are, times
// a factor for how few they are.
#pragma once

#include <optional>
#include <string>

#include "draft.h"

namespace tenon::fuzz {

/// Why `got` is not output `index` of the network; nothing where it is.
std::optional<std::string> wrong_output(const Network& network, size_t index,
                                        const TensorData& got);

}  // namespace tenon::fuzz
