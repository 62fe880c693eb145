// SPDX-License-Identifier: Apache-2.0
// Names contents by what they are: equal bytes have equal hashes on every host and in every run.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace tenon {

/// 128 bits over `head` and then `content` (XXH3), as 32 hex digits. Not for keeping secrets.
std::string content_hash(std::string_view head, std::span<const std::byte> content = {});
/// Whether the text could be one: 32 hex digits.
bool is_content_hash(std::string_view text);

/// The same of contents that come piece by piece: 128 bits over all of them, one after another.
class ContentHasher {
 public:
  using Digest = std::array<uint64_t, 2>;

  ContentHasher();
  void add(std::span<const std::byte> bytes);
  void add(int64_t number) { add(std::as_bytes(std::span(&number, 1))); }
  Digest digest() const;

 private:
  struct State;
  struct Release {
    void operator()(State* state) const;
  };
  std::unique_ptr<State, Release> state_;
};

}  // namespace tenon
