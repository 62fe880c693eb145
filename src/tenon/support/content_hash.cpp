// SPDX-License-Identifier: Apache-2.0
#include "tenon/support/content_hash.h"

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tenon {

std::string content_hash(std::string_view head, std::span<const std::byte> content) {
  XXH3_state_t* state = XXH3_createState();
  XXH3_128bits_reset(state);
  XXH3_128bits_update(state, head.data(), head.size());
  XXH3_128bits_update(state, content.data(), content.size());
  const XXH128_hash_t digest = XXH3_128bits_digest(state);
  XXH3_freeState(state);
  return fmt::format("{:016x}{:016x}", digest.high64, digest.low64);
}

bool is_content_hash(std::string_view text) {
  return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

static XXH3_state_t* xxh(void* state) { return static_cast<XXH3_state_t*>(state); }

ContentHasher::ContentHasher() : state_(reinterpret_cast<State*>(XXH3_createState())) {
  XXH3_128bits_reset(xxh(state_.get()));
}
void ContentHasher::Release::operator()(State* state) const { XXH3_freeState(xxh(state)); }
void ContentHasher::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(xxh(state_.get()), bytes.data(), bytes.size());
}
ContentHasher::Digest ContentHasher::digest() const {
  const XXH128_hash_t digest = XXH3_128bits_digest(xxh(state_.get()));
  return {digest.high64, digest.low64};
}

}  // namespace tenon
