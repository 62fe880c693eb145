// SPDX-License-Identifier: Apache-2.0
// Random numbers that are the same on every host: the distributions of the standard library differ
// between implementations.
#pragma once

#include <cstdint>

namespace tenon {

/// SplitMix64. Source: Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators",
/// OOPSLA 2014.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t bits() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  /// In [0, n), n > 0; slightly uneven for an n that is no power of 2.
  int64_t below(int64_t n) { return static_cast<int64_t>(bits() % static_cast<uint64_t>(n)); }
  double unit() { return static_cast<double>(bits() >> 40) * 0x1p-24; }  // exact in float32
  double sign() { return bits() >> 63 ? -1 : 1; }

 private:
  uint64_t state_;
};

}  // namespace tenon
