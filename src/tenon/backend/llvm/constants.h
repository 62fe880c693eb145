// The bytes of a program's constants, piece by piece: never all of them in memory at once.
#pragma once

#include <functional>
#include <span>

#include "tenon/backend/llvm/compile.h"

namespace tenon::llvm_backend {

/// Calls `sink` with pieces in the order of their offsets; what lies between them is zero.
void stream_constants(
    const ConstantsLayout& layout,
    const std::function<void(int64_t offset, std::span<const std::byte> bytes)>& sink);

}  // namespace tenon::llvm_backend
