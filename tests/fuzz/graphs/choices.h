// SPDX-License-Identifier: Apache-2.0
// The decisions of a generator: drawn from a seed, or taken from a list. What a list leaves out is
// 0, which stands for the simplest choice everywhere, so that a shorter list, or one of smaller
// numbers, makes a simpler network that is as well formed: that is how failures are reduced.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace tenon::fuzz {

class Choices {
 public:
  explicit Choices(uint64_t seed) : random_(seed), from_seed_(true) {}
  explicit Choices(std::vector<uint32_t> list) : list_(std::move(list)) {}

  /// A number below `count` (at least 1).
  uint32_t below(uint32_t count);
  /// From `least` to `most`.
  int64_t between(int64_t least, int64_t most) {
    return least + below(static_cast<uint32_t>(most - least + 1));
  }
  /// True so many times of a hundred; false is the simple choice.
  bool chance(uint32_t percent) { return below(100) >= 100 - percent; }
  template <typename T>
  const T& of(std::span<const T> values) {
    return values[below(static_cast<uint32_t>(values.size()))];
  }
  template <typename T>
  const T& of(const std::vector<T>& values) {
    return of(std::span<const T>(values));
  }
  template <typename T>
  T of(std::initializer_list<T> values) {
    return values.begin()[below(static_cast<uint32_t>(values.size()))];
  }

  /// What was chosen so far: given back as a list, it makes the same network.
  const std::vector<uint32_t>& taken() const { return taken_; }
  /// Marks what is chosen from here to the mark after it as one piece, which a reduction may leave
  /// out as a whole.
  void mark() { marks_.push_back(taken_.size()); }
  const std::vector<size_t>& marks() const { return marks_; }

 private:
  std::mt19937_64 random_;
  bool from_seed_ = false;
  std::vector<uint32_t> list_, taken_;
  std::vector<size_t> marks_;
};

}  // namespace tenon::fuzz
