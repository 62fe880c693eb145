// Names contents by what they are: equal bytes have equal hashes on every host and in every run.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace tenon {

/// 128 bits over `head` and then `content` (XXH3), as 32 hex digits. Not for keeping secrets.
std::string content_hash(std::string_view head, std::span<const std::byte> content = {});

}  // namespace tenon
