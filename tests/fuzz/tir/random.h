// SPDX-License-Identifier: Apache-2.0
// Random choices that are the same on every host, and that stay the same where other choices go.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tenon/support/random.h"

namespace tenon::fuzz {

/// Cheap to start, so that each program and each step has one of its own.
class Random : private tenon::Random {
 public:
  using tenon::Random::Random;

  uint64_t next() { return bits(); }
  /// Below `n`, which is above 0.
  size_t below(size_t n) { return static_cast<size_t>(next() % n); }
  /// Between both, which count.
  int64_t from(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(below(static_cast<size_t>(high - low + 1)));
  }
  bool coin() { return (next() >> 33) % 2 == 0; }
  bool one_in(size_t n) { return below(n) == 0; }
  template <typename T>
  const T& pick(const std::vector<T>& items) {
    return items[below(items.size())];
  }
  template <typename T>
  void shuffle(std::vector<T>& items) {
    for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

  /// The item whose name hashes highest together with a fresh number: without one of the others it
  /// is the same, so that a sequence of steps keeps its meaning while it is made shorter.
  template <typename T, typename NameOf>
  const T& pick_named(const std::vector<T>& items, const NameOf& name_of) {
    const uint64_t salt = next();
    size_t best = 0;
    uint64_t highest = 0;
    for (size_t i = 0; i < items.size(); ++i) {
      uint64_t hash = salt;
      const std::string name = name_of(items[i]);
      for (const char c : name) {
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
        hash ^= hash >> 29;
      }
      hash = Random(hash).next();
      if (i == 0 || hash > highest) {
        highest = hash;
        best = i;
      }
    }
    return items[best];
  }
};

}  // namespace tenon::fuzz
