// SPDX-License-Identifier: Apache-2.0
#include "choices.h"

#include <algorithm>

namespace tenon::fuzz {

uint32_t Choices::below(uint32_t count) {
  uint32_t chosen = 0;
  if (from_seed_) {
    chosen = static_cast<uint32_t>(random_() % count);
  } else if (taken_.size() < list_.size()) {
    chosen = std::min(list_[taken_.size()], count - 1);
  }
  taken_.push_back(chosen);
  return chosen;
}

}  // namespace tenon::fuzz
