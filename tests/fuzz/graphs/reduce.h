// SPDX-License-Identifier: Apache-2.0
// Smaller networks that fail in the same way.
#pragma once

#include <functional>

#include "choices.h"

namespace tenon::fuzz {

/// Leaves out operators and makes choices simpler while `fails` holds, for so many seconds at most.
std::vector<uint32_t> reduced(const Choices& choices,
                              const std::function<bool(const std::vector<uint32_t>&)>& fails,
                              double seconds);

}  // namespace tenon::fuzz
