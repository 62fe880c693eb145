// SPDX-License-Identifier: Apache-2.0
// Quasi-affine iterator maps: whether indices built from iterators by splitting and fusing visit
// every point of a box, each once, and the way back from indices to iterators.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "tenon/arith/analyzer.h"

namespace tenon::arith {

/// `var` runs through [min, min + extent).
struct Iterator {
  Ref<Var> var;
  Expr min, extent;
};

enum class MapKind : uint8_t {
  kBijective,  // onto the box of the indices, each point once
  kInjective,  // no point twice
};

/// Indices as functions of iterators, found to be of the asked kind. Index i takes values in
/// [min[i], min[i] + extent[i]); where the map is bijective, each of them.
struct IterMap {
  std::vector<Expr> min, extent;
  /// Each iterator as an expression of placeholders, one for each index.
  std::vector<Ref<Var>> placeholders;
  std::vector<Expr> inverse;  // in the order of the domain

  /// The iterators' values where the indices are `values`; valid for values that the map takes.
  std::vector<Expr> invert(Analyzer& analyzer, std::span<const Expr> values) const;
};

/// Understood are sums of scaled iterators, and quotients and remainders by constants or symbols of
/// iterators and of their fused sums, where splits are exact. Iterators of extent 1 may be left
/// out. Nothing where the map is not of `kind`, or not understood.
///
/// \param predicate  null, or a conjunction of upper bounds `index < limit`, as a split that does
///                   not divide leaves them: the points where it holds are what counts.
std::optional<IterMap> detect_iter_map(Analyzer& analyzer, std::span<const Expr> indices,
                                       std::span<const Iterator> domain,
                                       MapKind kind = MapKind::kBijective,
                                       const Expr& predicate = {});

/// The inverse alone: each iterator as a function of `values`; nothing where the indices are no
/// bijection.
std::optional<std::vector<Expr>> invert(Analyzer& analyzer, std::span<const Expr> indices,
                                        std::span<const Iterator> domain,
                                        std::span<const Expr> values);

}  // namespace tenon::arith
