// SPDX-License-Identifier: Apache-2.0
#include "tenon/support/names.h"

namespace tenon {

std::string NameSupply::take(const std::string& base, std::string_view separator) {
  if (reserve(base)) return base;
  for (int& next = next_[base];;) {
    std::string name = fmt::format("{}{}{}", base, separator, ++next);
    if (reserve(name)) return name;
  }
}

void NameSupply::release(const std::string& name) {
  taken_.erase(name);
  next_.erase(name);
}

}  // namespace tenon
