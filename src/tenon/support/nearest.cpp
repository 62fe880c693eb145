// SPDX-License-Identifier: Apache-2.0
#include "tenon/support/nearest.h"

#include <algorithm>
#include <vector>

namespace tenon {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

std::string nearest(std::string_view name, std::span<const std::string> names) {
  constexpr size_t kLongest = 256;  // of a name that is compared letter by letter
  std::string found;
  if (name.size() > kLongest) return found;
  size_t least = std::max<size_t>(2, name.size() / 3) + 1;
  for (const std::string& candidate : names) {
    if (candidate.size() > kLongest) continue;
    const size_t distance = edit_distance(name, candidate);
    if (distance >= least) continue;
    least = distance;
    found = candidate;
  }
  return found;
}

std::string did_you_mean(std::string_view name, std::span<const std::string> names) {
  const std::string found = nearest(name, names);
  return found.empty() ? "" : "; did you mean `" + found + "`?";
}

}  // namespace tenon
