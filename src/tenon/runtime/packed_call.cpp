// SPDX-License-Identifier: Apache-2.0
#include "tenon/runtime/packed_call.h"

#include <algorithm>
#include <functional>

namespace tenon::runtime {

static thread_local const PackedCall* innermost = nullptr;

void RunMemory::add_writable(const void* begin, int64_t bytes) {
  const auto* first = static_cast<const char*>(begin);
  if (first != nullptr) writable_.push_back({first, first + std::max<int64_t>(bytes, 1)});
}

bool RunMemory::is_writable(const void* at) const {
  const auto* byte = static_cast<const char*>(at);
  return std::any_of(writable_.begin(), writable_.end(), [&](const Range& range) {
    return !std::less<>()(byte, range.begin) && std::less<>()(byte, range.end);
  });
}

const PackedCall* PackedCall::current() { return innermost; }

PackedCallScope::PackedCallScope(const PackedCall& call) : outer_(innermost) { innermost = &call; }
PackedCallScope::~PackedCallScope() { innermost = outer_; }

}  // namespace tenon::runtime
