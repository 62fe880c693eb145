// SPDX-License-Identifier: Apache-2.0
// The order in which matches of back ends' patterns are taken, over operators and over TensorIR
// alike.
#pragma once

#include <cstdint>
#include <tuple>

namespace tenon::graph {

/// What is compared of two matches that overlap: the lower rank is taken first.
struct CandidateRank {
  bool is_user_placed = false;  // the user placed it there
  int backend_priority = 0, pattern_priority = 0;
  int64_t size = 0;                  // operators; blocks of TensorIR
  double work = 0;                   // arithmetic
  double seconds = 0;                // declared, or the estimate for own code
  uint64_t backend = 0, number = 0;  // in the order of `libs`, then of the program

  /// Everything that goes before the cost.
  auto importance() const {
    return std::tuple(!is_user_placed, -backend_priority, -pattern_priority, -size, -work);
  }
  friend bool operator<(const CandidateRank& a, const CandidateRank& b) {
    const auto key = [](const CandidateRank& one) {
      return std::tuple_cat(one.importance(), std::tuple(one.seconds, one.backend, one.number));
    };
    return key(a) < key(b);
  }
};

}  // namespace tenon::graph
