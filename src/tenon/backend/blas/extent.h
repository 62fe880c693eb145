// SPDX-License-Identifier: Apache-2.0
// Sizes in generated code: numbers, or products of them with dimensions that are known at run time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::backend::blas {

/// `number` times the value of each of `symbols` of the match, in rising order.
class Extent {
 public:
  Extent(int64_t number = 1) : number_(number) {}
  static Extent of_symbol(int symbol);

  bool is_number() const { return symbols_.empty(); }
  /// Where it is a number.
  int64_t number() const { return number_; }
  const std::vector<int>& symbols() const { return symbols_; }
  bool is(int64_t number) const { return is_number() && number_ == number; }

  friend bool operator==(const Extent&, const Extent&) = default;
  friend Extent operator*(const Extent& a, const Extent& b);
  /// Where all symbols are at least 1; false also where that is not known.
  bool is_at_least(const Extent& other) const;

  /// A C expression over `int64_t n0, n1, ...`: "2 * n0 * n1".
  std::string str() const;

 private:
  int64_t number_;
  std::vector<int> symbols_;
};

using Extents = std::vector<Extent>;
/// Of no extents: 1.
Extent product_of(const Extents& extents);

}  // namespace tenon::backend::blas
