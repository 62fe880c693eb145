// SPDX-License-Identifier: Apache-2.0
// Outputs of a program in the memory of an input: a cache that grows in place.
#pragma once

#include <vector>

#include "tenon/tir/stmt.h"

namespace tenon::tir {

/// Output `output` lies in the memory of input `input`, which holds the input when the program
/// begins.
struct SharedBuffer {
  size_t input = 0, output = 0;
};

/// Attribute of `main`, as a graph function and as the entry: a list of [input, output].
inline constexpr const char* kSharedBuffers = "tenon.shared_buffers";

/// What it says; empty where it is absent. \throws CompileError (kBadAttribute) where it is
/// malformed, or names an input or an output twice or one that is not there.
std::vector<SharedBuffer> shared_buffers(const Attrs& attrs, size_t inputs, size_t outputs,
                                         const Origin& origin);

}  // namespace tenon::tir
