// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/shape.h"

#include <algorithm>
#include <functional>

#include "tenon/arith/analyzer.h"

namespace tenon::graph {

DimsAgree dims_agree(const Expr& a, const Expr& b) {
  const auto x = as_int(a), y = as_int(b);
  if (x && y) return *x == *y ? DimsAgree::kYes : DimsAgree::kNo;
  if (structural_equal(a, b)) return DimsAgree::kYes;
  arith::Analyzer analyzer;
  if (analyzer.proves_equal(a, b)) return DimsAgree::kYes;
  return analyzer.proves(ne(a, b)) ? DimsAgree::kNo : DimsAgree::kUnknown;
}

DimsAgree shapes_agree(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  if (a.size() != b.size()) return DimsAgree::kNo;
  DimsAgree result = DimsAgree::kYes;
  for (size_t i = 0; i < a.size(); ++i) {
    const DimsAgree pair = dims_agree(a[i], b[i]);
    if (pair == DimsAgree::kNo) return pair;
    if (pair == DimsAgree::kUnknown) result = pair;
  }
  return result;
}

Expr simplify_dim(const Expr& dim) {
  return dim.as<IntImm>() || dim.as<tenon::Var>() ? dim : arith::simplify(dim);
}

std::optional<std::vector<Expr>> broadcast_shapes(const std::vector<Expr>& a,
                                                  const std::vector<Expr>& b, std::string_view op,
                                                  const Origin& origin) {
  const size_t ndim = std::max(a.size(), b.size());
  std::vector<Expr> shape(ndim);
  bool known = true;
  for (size_t i = 0; i < ndim; ++i) {  // from the last dimension
    Expr& out = shape[ndim - 1 - i];
    if (i >= a.size()) {
      out = b[b.size() - 1 - i];
    } else if (i >= b.size()) {
      out = a[a.size() - 1 - i];
    } else {
      const Expr& x = a[a.size() - 1 - i];
      const Expr& y = b[b.size() - 1 - i];
      if (is_int(x, 1)) {
        out = y;
      } else if (is_int(y, 1)) {
        out = x;
      } else {
        const DimsAgree agree = dims_agree(x, y);
        // Two constants that differ cannot meet; a symbolic dimension may still be 1.
        if (agree == DimsAgree::kNo && as_int(x) && as_int(y))
          throw CompileError(kShapeMismatch, origin,
                             "`{}` cannot broadcast shapes {} and {}: dimensions {} and {} differ",
                             op, tenon::str(a), tenon::str(b), str(x), str(y));
        out = as_int(y) ? y : x;
        known = known && agree == DimsAgree::kYes;
      }
    }
  }
  if (!known) return std::nullopt;
  return shape;
}

Expr product(const std::vector<Expr>& dims) {
  Expr total = int64(1);
  for (const Expr& dim : dims) total = total * dim;
  return arith::simplify(total);
}

Expr exact_quotient(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  std::vector<Expr> above;
  int64_t constant_above = 1, constant_below = 1;
  const std::function<void(const Expr&, int64_t&, std::vector<Expr>&)> factor =
      [&](const Expr& dim, int64_t& constant, std::vector<Expr>& rest) {
        const auto* product = dim.as<Binary>();
        if (product && product->op == BinaryOp::kMul) {
          factor(product->lhs, constant, rest);
          factor(product->rhs, constant, rest);
          return;
        }
        const auto number = as_int(dim);
        int64_t scaled = 0;
        if (number && !__builtin_mul_overflow(constant, *number, &scaled)) {
          constant = scaled;
        } else {
          rest.push_back(dim);
        }
      };
  std::vector<Expr> below;
  // Equal factors cancel, so that symbolic dimensions divide.
  for (const Expr& dim : a) factor(dim, constant_above, above);
  for (const Expr& dim : b) factor(dim, constant_below, below);
  for (auto it = below.begin(); it != below.end();) {
    const auto equal = std::find_if(above.begin(), above.end(), [&](const Expr& other) {
      return arith::proves_equal(other, *it);
    });
    if (equal == above.end()) {
      ++it;
    } else {
      above.erase(equal);
      it = below.erase(it);
    }
  }
  if (below.empty() && constant_below != 0 && constant_above % constant_below == 0)
    return arith::simplify(product(above) * int64(constant_above / constant_below));
  return arith::simplify(
      floordiv(product(above) * int64(constant_above), product(below) * int64(constant_below)));
}

}  // namespace tenon::graph
