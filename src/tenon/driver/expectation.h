// SPDX-License-Identifier: Apache-2.0
// What a program is to compute, and how far from it rounding may lead: the one rule by which
// `--validate`, `check --kernels` and the random programs of the tests compare floating-point
// results (docs/reliability.md).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tenon/driver/compare.h"
#include "tenon/ir/module.h"

namespace tenon {

/// Runs what computes a result again, each inexact operation rounded at random
/// (interp::Options::rounding_seed).
using Rerun = std::function<std::vector<Ref<TensorData>>(uint64_t seed)>;

/// How many terms the elements of a module's results are summed from: the longest sum of each
/// function, added up over what `main` calls, since errors add up along a network.
int64_t longest_sum(const IRModule& module);

class Expectation {
 public:
  /// \param terms  of the sums in it (longest_sum), at least 1
  /// \param rerun  may be empty: then only the bound by dtype and terms holds
  Expectation(std::vector<Ref<TensorData>> outputs, int64_t terms, Rerun rerun)
      : outputs_(std::move(outputs)), terms_(terms), rerun_(std::move(rerun)) {}

  const std::vector<Ref<TensorData>>& outputs() const { return outputs_; }

  /// Where `got` is not output `i` by more than rounding explains: an element may be off by
  /// rounding_tolerance(), or by some times what random rounding makes of it, in what computed the
  /// expectation or in `own`: what computed `got`, run by the interpreter, where there is such.
  /// `slack`: more that each element may be off by.
  std::optional<Mismatch> mismatch(size_t i, const TensorData& got, Expectation* own = nullptr,
                                   std::span<const double> slack = {});

 private:
  std::optional<Mismatch> unexplained(size_t i, const TensorData& got, const Expectation* own,
                                      std::span<const double> slack) const;
  // Runs it again until `runs` runs with random rounding are known.
  void spread_of(uint64_t runs);

  std::vector<Ref<TensorData>> outputs_;
  int64_t terms_;
  Rerun rerun_;
  uint64_t runs_ = 0;
  std::vector<std::vector<double>> spread_;  // of each output's elements: how far they moved
};

}  // namespace tenon
