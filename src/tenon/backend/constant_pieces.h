// SPDX-License-Identifier: Apache-2.0
// The bytes of one constant of a program (constants.h).
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "tenon/backend/constants.h"

namespace tenon::backend {

/// Calls `sink` with the bytes of the constant, piece by piece, at their offsets in the whole.
void stream_constant(
    const ConstantsLayout::Item& item,
    const std::function<void(int64_t offset, std::span<const std::byte> bytes)>& sink);

}  // namespace tenon::backend
