// SPDX-License-Identifier: Apache-2.0
// Matrix products.
#include <algorithm>
#include <cmath>

#include "generators.h"

namespace tenon::fuzz {

namespace {

constexpr int64_t kMostMacs = 1 << 16;  // the interpreter does some ten million a second

bool takes(const Item& item) {
  return !item.dtype().is_bool() && item.data->elements() > 0 &&
         (!item.dtype().is_integer() ||
          item.magnitude() * item.magnitude() * 128 < std::ldexp(1, item.dtype().bits - 1));
}

// Of a product: around multiples of the panels' widths, one more than these among them.
int64_t columns(Draft& draft, int64_t most) {
  const int64_t count = draft.choices.chance(40)
                            ? draft.choices.of({17, 33, 41, 49, 65, 25, 97, 129, 34, 80})
                            : draft.extent();
  return std::max<int64_t>(1, std::min(count, most));
}

int64_t last(const Item& item) { return item.shape().back(); }

void matmul(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const Item a = draft.operand([&] { return draft.number_dtype(); }, 1, 4, takes, {}, 1024);
  if (!takes(a)) return;
  const int64_t macs = std::max<int64_t>(1, a.data->elements());
  const auto found = draft.find([&](const Item& item) {
    if (item.dtype() != a.dtype() || item.ndim() == 0 || !takes(item)) return false;
    const size_t n = item.ndim();
    return item.shape()[n == 1 ? 0 : n - 2] == last(a);
  });
  std::optional<Item> b;
  if (found && c.chance(30)) {
    b = found;
  } else {
    std::vector<Expr> shape = {a.type->dim(-1)};
    if (!c.chance(10)) {
      shape.push_back(int64(columns(draft, std::max<int64_t>(1, kMostMacs / macs))));
      if (a.ndim() > 2 && c.chance(40))
        for (size_t d = a.ndim() - 2; d-- > 0 && c.chance(70);)
          shape.insert(shape.begin(),
                       c.chance(20) ? int64(1) : a.type->dim(static_cast<int64_t>(d)));
    }
    // Weights are constants in most networks, packed when they are compiled.
    bool fixed = c.chance(50);
    std::vector<int64_t> extents;
    for (const Expr& dim : shape) {
      fixed = fixed && as_int(dim);
      if (fixed) extents.push_back(*as_int(dim));
    }
    b = fixed ? draft.constant(a.dtype(), extents) : draft.fresh(a.dtype(), shape);
  }
  if (!takes(*b) || macs * (b->ndim() == 1 ? 1 : last(*b)) > 4 * kMostMacs) return;
  Attrs attrs;
  if (a.dtype().bits < 32 && c.chance(30))
    attrs.set("out_dtype", a.dtype().is_float() ? kFloat32 : kInt32);
  draft.call(op, {a.value, b->value}, attrs, Rounds::kArithmetic);
}

void gemm(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const Item a = draft.operand([&] { return draft.number_dtype(); }, 2, 2, takes, {}, 1024);
  if (!takes(a)) return;
  const bool flips_a = c.chance(40), flips_b = c.chance(40);
  const Expr k = a.type->dim(flips_a ? 0 : 1), m = a.type->dim(flips_a ? 1 : 0);
  const Expr n = int64(columns(draft, std::max<int64_t>(1, kMostMacs / a.data->elements())));
  const Item b =
      draft.fresh(a.dtype(), flips_b ? std::vector<Expr>{n, k} : std::vector<Expr>{k, n});
  std::vector<graph::Value> args = {a.value, b.value};
  if (c.chance(70)) {
    const std::vector<Expr> shapes[] = {{n}, {m, n}, {int64(1), n}, {m, int64(1)}, {}};
    args.push_back(draft.fresh(a.dtype(), shapes[c.below(5)]).value);
  }
  Attrs attrs{{"transpose_a", flips_a}, {"transpose_b", flips_b}};
  if (c.chance(30)) attrs.set("alpha", a.dtype().is_integer() ? 2.0 : c.of({0.5, 0.25, 1.5}));
  if (c.chance(30)) attrs.set("beta", a.dtype().is_integer() ? 1.0 : c.of({0.5, 0.0, 2.0}));
  draft.call(op, args, attrs, Rounds::kArithmetic);
}

void outer(Draft& draft, std::string_view op) {
  const auto small = [](const Item& item) {
    return !item.dtype().is_bool() && (!item.dtype().is_integer() || item.magnitude() < 11);
  };
  const Item a = draft.operand([&] { return draft.number_dtype(); }, 1, 1, small, {}, 65);
  if (!small(a)) return;
  const auto b = draft.choices.chance(40) ? draft.find([&](const Item& item) {
    return item.ndim() == 1 && item.dtype() == a.dtype() && small(item) &&
           item.data->elements() <= 65;
  })
                                          : std::nullopt;
  const Item other = b ? *b : draft.fresh(a.dtype(), draft.shape(1, 65));
  draft.call(op, {a.value, other.value}, {}, Rounds::kArithmetic);
}

// Subscripts of one to three operands: letters shared, summed and kept at random.
void einsum(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const DType dtype = draft.number_dtype();
  const auto count = 1 + c.below(3);
  const std::string letters = "ijkl";
  std::vector<int64_t> extents;
  for (size_t i = 0; i < letters.size(); ++i) extents.push_back(draft.extent(count == 3 ? 5 : 9));
  std::string text;
  std::string used;
  std::vector<graph::Value> operands;
  for (uint32_t o = 0; o < count; ++o) {
    std::string term;
    for (const char letter : letters)
      if (c.chance(50)) term += letter;
    if (term.empty()) term = "i";
    if (term.size() > 1 && c.chance(30)) std::swap(term.front(), term.back());
    std::vector<int64_t> shape;
    for (const char letter : term) shape.push_back(extents[letters.find(letter)]);
    for (const char letter : term)
      if (used.find(letter) == std::string::npos) used += letter;
    operands.push_back(
        draft.fresh(dtype, shape, dtype.is_integer() ? from_to(0, 2) : Content{}).value);
    text += (o ? "," : "") + term;
  }
  if (!c.chance(20)) {
    text += "->";
    if (c.chance(30)) std::reverse(used.begin(), used.end());
    for (const char letter : used)
      if (c.chance(60)) text += letter;
  }
  if (dtype.is_integer() && dtype.bits < 32) return;
  draft.call(op, {make<graph::Tuple>(operands)}, {{"subscripts", text}}, Rounds::kArithmetic);
}

}  // namespace

std::vector<GeneratorRow> product_generators() {
  return {{"matmul", matmul, 16}, {"nn.gemm", gemm, 5}, {"outer", outer, 1}, {"einsum", einsum, 2}};
}

}  // namespace tenon::fuzz
