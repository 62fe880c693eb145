// SPDX-License-Identifier: Apache-2.0
// Shape arithmetic of type rules: comparing and broadcasting symbolic dimensions.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "tenon/graph/expr.h"

namespace tenon::graph {

/// Whether two dimensions are the same number for every value of their variables.
enum class DimsAgree : uint8_t {
  kYes,      // proved equal
  kNo,       // proved different
  kUnknown,  // neither: as Relax does, type rules accept it where one dimension is only read
             // (`matmul`'s inner one) and give a type without shape where the result depends on it
};
DimsAgree dims_agree(const Expr& a, const Expr& b);
/// All pairs; kNo where the ranks differ.
DimsAgree shapes_agree(const std::vector<Expr>& a, const std::vector<Expr>& b);

/// In the canonical form that dimensions are kept in.
Expr simplify_dim(const Expr& dim);

/// NumPy's broadcasting of two shapes; nothing where a pair is neither proved equal nor 1.
/// \throws CompileError (kShapeMismatch) at `origin` where a pair cannot be broadcast.
std::optional<std::vector<Expr>> broadcast_shapes(const std::vector<Expr>& a,
                                                  const std::vector<Expr>& b, std::string_view op,
                                                  const Origin& origin);

/// Of dimensions, simplified; 1 of none.
Expr product(const std::vector<Expr>& dims);
/// The product of `a` by that of `b`, which divides it, with equal factors cancelled.
Expr exact_quotient(const std::vector<Expr>& a, const std::vector<Expr>& b);

}  // namespace tenon::graph
