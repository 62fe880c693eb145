// SPDX-License-Identifier: Apache-2.0
// Primitives that decide at random. The decision stands in the trace.
#include <cmath>

#include "tenon/tir/schedule/edit.h"

namespace tenon::tir {

NumberRV Schedule::sampled(int64_t value) {
  std::string name = fmt::format("v{}", numbers_.size());
  for (const Ref<Var>& symbol : trace_.symbols)
    if (symbol->name == name) name += "_";
  const NumberRV number{var(name)};
  numbers_.emplace(number.var.get(), std::pair(number.var, value));
  return number;
}

int64_t Schedule::get(const NumberRV& number) const {
  const auto found = numbers_.find(number.var.get());
  if (found == numbers_.end())
    illegal(func_->origin, "number `{}` is not of this schedule", number.var->name);
  return found->second.second;
}

NumberRV Schedule::sample_categorical(const std::vector<int64_t>& candidates,
                                      const std::vector<double>& probs,
                                      std::optional<int64_t> decision) {
  if (candidates.empty() || candidates.size() != probs.size())
    illegal(func_->origin, "{} candidates have {} probabilities; expected one for each",
            candidates.size(), probs.size());
  double total = 0;
  for (const double prob : probs) {
    if (!(prob >= 0) || std::isinf(prob))
      illegal(func_->origin, "a probability is {}; expected 0 or more", prob);
    total += prob;
  }
  if (!(total > 0)) illegal(func_->origin, "all probabilities are 0");
  if (!decision) {
    double left = random_.unit() * total;
    decision = 0;
    for (size_t i = 0; i < probs.size(); ++i) {
      if (probs[i] == 0) continue;  // rounding does not choose it
      decision = static_cast<int64_t>(i);
      left -= probs[i];
      if (left < 0) break;
    }
  }
  if (*decision < 0 || *decision >= static_cast<int64_t>(candidates.size()))
    illegal(func_->origin, "the decision is {}; expected one of {} candidates", *decision,
            candidates.size());
  const NumberRV number = sampled(candidates[static_cast<size_t>(*decision)]);
  AttrList odds;
  for (const double prob : probs) odds.emplace_back(prob);
  record("sample_categorical", {},
         {{"candidates", AttrValue(candidates)}, {"probs", odds}, {"decision", *decision}},
         {number});
  return number;
}

// In how many ways `extent` is a product of `count` factors in order.
static double tilings(int64_t extent, int64_t count) {
  if (count == 0) return extent == 1;
  double ways = 1;
  for (int64_t prime = 2; extent > 1; ++prime) {
    if (prime * prime > extent) prime = extent;
    int64_t power = 0;
    for (; extent % prime == 0; extent /= prime) ++power;
    for (int64_t i = 1; i <= power; ++i)  // power + count - 1 over power
      ways = ways * static_cast<double>(count - 1 + i) / static_cast<double>(i);
  }
  return ways;
}

// One of the tilings of `extent`, each as likely as any other; nothing where there is none.
static std::optional<std::vector<int64_t>> draw_tiling(int64_t extent, int64_t n, int64_t innermost,
                                                       Random& random) {
  std::vector<int64_t> factors(static_cast<size_t>(n));
  // From the innermost: each factor as likely as the tilings that go on from it are many.
  for (int64_t count = n; count > 0; --count) {
    std::vector<std::pair<int64_t, double>> choices;  // with the ways up to and with it
    double total = 0;
    const auto add = [&](int64_t factor) {
      if (count == n && factor > innermost) return;
      const double ways = tilings(extent / factor, count - 1);
      if (ways > 0) choices.emplace_back(factor, total += ways);
    };
    for (int64_t factor = 1; factor <= extent / factor; ++factor) {
      if (extent % factor != 0) continue;
      add(factor);
      if (factor != extent / factor) add(extent / factor);
    }
    if (choices.empty()) return std::nullopt;
    const double at = random.unit() * total;
    size_t i = 0;
    while (i + 1 < choices.size() && choices[i].second <= at) ++i;
    factors[static_cast<size_t>(count - 1)] = choices[i].first;
    extent /= choices[i].first;
  }
  return factors;
}

static bool is_tiling(const std::vector<int64_t>& factors, int64_t extent) {
  int64_t left = extent;
  for (const int64_t factor : factors) {
    if (factor < 1 || left % factor != 0) return false;
    left /= factor;
  }
  return left == 1;
}

std::vector<NumberRV> Schedule::sample_perfect_tile(
    const LoopRV& loop, int64_t n, int64_t max_innermost_factor,
    const std::optional<std::vector<int64_t>>& decision) {
  const Ref<For> node = get(loop);
  const auto extent = as_int(node->extent);
  if (!extent || *extent < 1)
    illegal(node->origin, "loop `{}` has extent {}; expected a constant of at least 1",
            node->loop_var->name, str(node->extent));
  constexpr int64_t kMost = 16;
  if (n < 1 || n > kMost)
    illegal(node->origin, "a tiling by {} factors; expected 1 to {}", n, kMost);
  if (decision && (static_cast<int64_t>(decision->size()) != n || !is_tiling(*decision, *extent)))
    illegal(node->origin, "the decision {} is no tiling of {} by {} factors",
            AttrValue(*decision).str(), *extent, n);
  const auto factors = decision ? decision : draw_tiling(*extent, n, max_innermost_factor, random_);
  if (!factors)
    illegal(node->origin, "{} has no tiling by {} factors, the innermost at most {}", *extent, n,
            max_innermost_factor);
  std::vector<NumberRV> out;
  for (const int64_t factor : *factors) out.push_back(sampled(factor));
  record("sample_perfect_tile", {loop},
         {{"n", n}, {"max_innermost_factor", max_innermost_factor}, {"decision", *factors}},
         {out.begin(), out.end()});
  return out;
}

}  // namespace tenon::tir
