// SPDX-License-Identifier: Apache-2.0
// Sums of floats whose terms are linear in products of 8 bits (T.dot4): the products are summed up as
// integers, exactly, and what they are multiplied by and converted to follows once.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "tenon/tir/stmt.h"

namespace tenon::tir {

struct IntegerSum {
  std::vector<Expr> products;  // int32, of one term
  Expr total;                  // of the sums of products, which stand in it as `of_sum` gave them
};

/// The sum of `terms` values of `term`, a float32 that is linear in products: `varies` tells whether an
/// expression changes from term to term, `of_sum` gives the sum of product i. Nothing where it has
/// another form, or the integers might not fit 32 bits.
std::optional<IntegerSum> integer_sum(const Expr& term, int64_t terms,
                                      const std::function<bool(const Expr&)>& varies,
                                      const std::function<Expr(size_t)>& of_sum);

/// Products of 8 bits in what a reduction of floats adds: each wants a sum beside the reduction's own.
int64_t count_products(const Block& block);

}  // namespace tenon::tir
