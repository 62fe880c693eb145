// SPDX-License-Identifier: Apache-2.0
// What of mapped files (mapped_file.h) is in memory.
#pragma once

#include <cstddef>
#include <span>

namespace tenon {

/// Takes the pages of `bytes` out of memory, as far as they are whole ones of a MappedFile: the next
/// use reads them from the file again. For who has read them all and is not likely to do so again
/// soon. Of other bytes it changes nothing.
void drop_mapped_pages(std::span<const std::byte> bytes) noexcept;

}  // namespace tenon
