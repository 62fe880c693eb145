// SPDX-License-Identifier: Apache-2.0
// Fresh names: a number behind those that are taken already.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace tenon {

/// `base` where it is free, or the first free one of `base_1`, `base_2`, ...; `next`: the last
/// number that was tried, from which a later call goes on.
template <typename IsTaken>
std::string fresh_name(const std::string& base, const IsTaken& is_taken, int& next) {
  std::string name = base;
  while (is_taken(name)) name = fmt::format("{}_{}", base, ++next);
  return name;
}
template <typename IsTaken>
std::string fresh_name(const std::string& base, const IsTaken& is_taken) {
  int next = 0;
  return fresh_name(base, is_taken, next);
}

/// The names of one scope, each handed out once.
class NameSupply {
 public:
  /// `base` where it is free, or the first free one of `base_1`, `base_2`, ...
  std::string take(const std::string& base, std::string_view separator = "_");
  /// False where it is taken already.
  bool reserve(const std::string& name) { return taken_.insert(name).second; }
  void release(const std::string& name);
  bool has(const std::string& name) const { return taken_.count(name) != 0; }

 private:
  std::unordered_set<std::string> taken_;
  // The last number that was tried, so that many names of one base cost no search each.
  std::unordered_map<std::string, int> next_;
};

}  // namespace tenon
