// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/blas/extent.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace tenon::backend::blas {

Extent Extent::of_symbol(int symbol) {
  Extent out;
  out.symbols_ = {symbol};
  return out;
}

Extent operator*(const Extent& a, const Extent& b) {
  Extent out(a.number_ * b.number_);
  if (out.number_ != 0)
    std::merge(a.symbols_.begin(), a.symbols_.end(), b.symbols_.begin(), b.symbols_.end(),
               std::back_inserter(out.symbols_));
  return out;
}

bool Extent::is_at_least(const Extent& other) const {
  return number_ >= other.number_ && std::includes(symbols_.begin(), symbols_.end(),
                                                   other.symbols_.begin(), other.symbols_.end());
}

std::string Extent::str() const {
  std::string out = number_ != 1 || symbols_.empty() ? fmt::format("{}", number_) : "";
  for (const int symbol : symbols_) out += fmt::format("{}n{}", out.empty() ? "" : " * ", symbol);
  return out;
}

Extent product_of(const Extents& extents) {
  Extent out;
  for (const Extent& extent : extents) out = out * extent;
  return out;
}

}  // namespace tenon::backend::blas
