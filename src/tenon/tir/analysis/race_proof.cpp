// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/analysis/race_proof.h"

#include <algorithm>
#include <cmath>

#include "tenon/arith/int_set.h"
#include "tenon/tir/analysis/region.h"

namespace tenon::tir {

using Access = ParallelAccess;

namespace {

// As elements one after another; nothing where it is a region of several dimensions.
std::optional<Range> flat(const Access& access) {
  if (access.is_flat) return access.box[0];
  for (const Range& range : access.box)
    if (!is_int(range.extent, 1)) return std::nullopt;
  const Buffer& buffer = *access.memory;
  const std::vector<Expr> strides =
      buffer.is_compact() ? compact_strides(buffer.shape) : buffer.strides;
  Expr place = int64(0);
  for (size_t d = 0; d < access.box.size(); ++d)
    place = place + cast(kInt64, access.box[d].min) * cast(kInt64, strides[d]);
  return Range{place, int64(1)};
}

// One iteration of the parallel loop, and another one after it in the order of their numbers, each
// with inner loops of its own.
class Pair {
 public:
  Pair(const ParallelLoop& loop, const std::vector<Ref<Var>>& symbols)
      : loop_(loop), symbols_(symbols) {}

  /// Whether the element that `a` touches in an iteration is none that `b` touches in a later one.
  bool proves_apart(const Access& a, const Access& b) {
    const Running& running = a.loops[loop_.depth];
    if (apart(a, b, one_step(running))) return true;
    for (const Digits& digits : digits_of(a, b, running)) {
      bool all = true;
      for (size_t k = 0; all && k < digits.radices.size(); ++k)
        all = apart(a, b, case_of(digits, k, running));
      if (all) return true;
    }
    return false;
  }

 private:
  // Values of the loop's variable in both iterations, and what runs in them.
  struct Case {
    Expr first, second;
    std::vector<std::pair<Ref<Var>, Range>> vars;
    std::vector<Expr> facts;
  };
  Case one_step(const Running& running) const {
    const DType dtype = running.var->dtype;
    const Ref<Var> i = var(running.var->name, dtype), more = var("more", dtype);
    const Expr one = imm(dtype, int64_t{1});
    const Expr min = cast(dtype, running.min), extent = cast(dtype, running.extent);
    Case out;
    out.first = i;
    out.second = Expr(i) + one + Expr(more);
    out.vars = {{i, {min, extent - one}}, {more, {imm(dtype, int64_t{0}), extent - one}}};
    out.facts = {out.second < min + extent};
    return out;
  }

  // i = ... + digit1 * radix1 + digit0: of an index with quotients and remainders of it.
  struct Digits {
    std::vector<Expr> radices;  // of each digit but the last, what one step of the next is worth
  };
  std::vector<Digits> digits_of(const Access& a, const Access& b, const Running& running) const {
    std::vector<int64_t> numbers;
    std::vector<Expr> symbolic;
    const auto see = [&](const Expr& expr) {
      if (!expr) return;
      walk<Binary>(expr, [&](const Binary& op) {
        if ((op.op != BinaryOp::kFloorDiv && op.op != BinaryOp::kFloorMod) ||
            !uses_var(op.lhs, running.var.get()) || uses_var(op.rhs, running.var.get()))
          return;
        if (const auto number = as_int(op.rhs)) {
          if (*number > 1) numbers.push_back(*number);
        } else if (std::none_of(symbolic.begin(), symbolic.end(), [&](const Expr& other) {
                     return structural_equal(other, op.rhs);
                   })) {
          symbolic.push_back(op.rhs);
        }
      });
    };
    for (const Access* access : {&a, &b}) {
      for (const Range& range : access->box) see(range.min);
      for (const Access::Guard& guard : access->guards) see(guard.condition);
    }
    std::vector<Digits> out;
    const DType dtype = running.var->dtype;
    const Expr one = imm(dtype, int64_t{1});
    if (!numbers.empty() && is_int(running.min, 0)) {
      std::sort(numbers.begin(), numbers.end());
      Digits digits{{one}};
      int64_t last = 1;
      for (const int64_t number : numbers) {
        if (number == last || number % last != 0) continue;
        digits.radices.push_back(imm(dtype, number));
        last = number;
      }
      out.push_back(digits);
    }
    if (is_int(running.min, 0) && symbolic.size() == 1)
      out.push_back({{one, cast(dtype, symbolic[0])}});
    return out;
  }

  // Digits above the k-th are equal, the k-th is greater in the second iteration.
  Case case_of(const Digits& digits, size_t k, const Running& running) const {
    const DType dtype = running.var->dtype;
    const Expr zero = imm(dtype, int64_t{0}), one = imm(dtype, int64_t{1});
    Case out{zero, zero, {}, {}};
    for (size_t d = digits.radices.size(); d-- > 0;) {
      const Expr& radix = digits.radices[d];
      const bool is_last = d + 1 == digits.radices.size();
      const Expr count = arith::simplify(is_last ? ceildiv(cast(dtype, running.extent), radix)
                                                 : floordiv(digits.radices[d + 1], radix));
      const Ref<Var> first = var("digit", dtype);
      Expr second = first;
      if (d > k) {
        out.vars.push_back({first, {zero, count}});
      } else if (d == k) {
        const Ref<Var> more = var("more", dtype);
        out.vars.push_back({first, {zero, count - one}});
        out.vars.push_back({more, {zero, count - one}});
        second = Expr(first) + one + Expr(more);
        out.facts.push_back(second < count);
      } else {
        const Ref<Var> other = var("digit", dtype);
        out.vars.push_back({first, {zero, count}});
        out.vars.push_back({other, {zero, count}});
        second = other;
      }
      out.first = out.first + Expr(first) * radix;
      out.second = out.second + second * radix;
    }
    return out;
  }

  // An access in one of the iterations, its inner loops renamed.
  struct Placed {
    std::vector<Range> box;
    std::vector<Expr> guards;
    std::vector<std::pair<Ref<Var>, Range>> inner;
  };
  Placed placed(const Access& access, const Expr& iteration) const {
    Substitution values;
    values[access.loops[loop_.depth].var.get()] = iteration;
    Placed out;
    for (size_t l = loop_.depth + 1; l < access.loops.size(); ++l) {
      const Running& loop = access.loops[l];
      const Ref<Var> fresh = make<Var>(loop.var->name, loop.var->dtype);
      out.inner.push_back({fresh, {substitute(loop.min, values), substitute(loop.extent, values)}});
      values[loop.var.get()] = Expr(fresh);
    }
    for (const Range& range : access.box)
      out.box.push_back({substitute(range.min, values), substitute(range.extent, values)});
    for (const Access::Guard& guard : access.guards)
      out.guards.push_back(substitute(guard.condition, values));
    return out;
  }

  bool apart(const Access& a, const Access& b, const Case& step) const {
    arith::Analyzer analyzer;
    arith::Domain domain;
    for (const Ref<Var>& symbol : symbols_) analyzer.bind_lower(symbol, 0);
    for (size_t l = 0; l < loop_.depth; ++l)
      analyzer.bind(a.loops[l].var, a.loops[l].min, a.loops[l].extent);
    // A digit with one value only cannot grow.
    for (const auto& [var, range] : step.vars) {
      if (analyzer.proves(range.extent <= imm(range.extent->dtype, int64_t{0}))) return true;
      analyzer.bind(var, range);
    }
    const Placed first = placed(a, step.first), second = placed(b, step.second);
    for (const Placed* one : {&first, &second})
      for (const auto& [var, range] : one->inner) {
        const Expr min = analyzer.simplify(range.min), extent = analyzer.simplify(range.extent);
        analyzer.bind(var, min, extent);
        domain[var.get()] = arith::Interval::of(min, extent);
      }
    for (const Expr& fact : step.facts) analyzer.assume(fact);
    for (const Placed* one : {&first, &second})
      for (const Expr& guard : one->guards) {
        if (analyzer.proves(logical_not(guard))) return true;
        analyzer.assume(guard);
      }
    std::vector<Range> x = first.box, y = second.box;
    if (a.is_flat != b.is_flat) {
      Access left = a, right = b;
      left.box = x;
      right.box = y;
      const auto p = flat(left), q = flat(right);
      if (!p || !q) return false;
      x = {*p};
      y = {*q};
    }
    for (size_t d = 0; d < x.size(); ++d) {
      const Expr gap = cast(kInt64, y[d].min) - cast(kInt64, x[d].min);
      const Expr before = gap - cast(kInt64, x[d].extent);
      const Expr behind = int64(0) - gap - cast(kInt64, y[d].extent);
      for (const Expr& room : {before, behind}) {
        const Expr simple = analyzer.simplify(room);
        const arith::Interval range = arith::evaluate(analyzer, simple, domain);
        if (range.min && analyzer.proves_nonnegative(range.min)) return true;
      }
      if (between_multiples(analyzer.simplify(gap), x[d].extent, y[d].extent, analyzer))
        return true;
    }
    return false;
  }

  // -b < gap < a holds nowhere: gap is a sum of multiples of some g and a rest that never comes so
  // near to one.
  static bool between_multiples(const Expr& gap, const Expr& a, const Expr& b,
                                arith::Analyzer& analyzer) {
    const auto own = as_int(analyzer.simplify(a)), other = as_int(analyzer.simplify(b));
    if (!own || !other) return false;
    std::vector<Ref<Var>> vars;
    walk<Var>(gap, [&](const Var& var) {
      if (std::none_of(vars.begin(), vars.end(), [&](const auto& v) { return v.get() == &var; }))
        vars.push_back(ref_to(&var));
    });
    const auto form = analyzer.linear(gap, vars);
    if (!form) return false;
    const auto rest = as_int(form->rest);
    if (!rest) return false;
    std::vector<int64_t> factors;
    for (const Expr& factor : form->coefficients) {
      const auto number = as_int(factor);
      if (!number) return false;
      factors.push_back(*number);
    }
    for (const int64_t candidate : factors) {
      const int64_t g = std::abs(candidate);
      if (g < 2) continue;
      double low = static_cast<double>(*rest), high = low;
      for (size_t v = 0; v < vars.size(); ++v) {
        if (factors[v] % g == 0) continue;
        const arith::ConstBound bound = analyzer.const_bound(vars[v]);
        if (!bound.has_min() || !bound.has_max()) low = -1e300, high = 1e300;
        const double ends[] = {static_cast<double>(factors[v]) * static_cast<double>(bound.min),
                               static_cast<double>(factors[v]) * static_cast<double>(bound.max)};
        low += std::min(ends[0], ends[1]);
        high += std::max(ends[0], ends[1]);
      }
      // Overlap: -other < gap < own.
      low -= static_cast<double>(*own) - 1;
      high += static_cast<double>(*other) - 1;
      if (std::abs(low) > 1e15 || std::abs(high) > 1e15) continue;
      if (std::floor(high / static_cast<double>(g)) < std::ceil(low / static_cast<double>(g)))
        return true;
    }
    return false;
  }

  const ParallelLoop& loop_;
  const std::vector<Ref<Var>>& symbols_;
};

}  // namespace

bool proves_apart(const ParallelAccess& a, const ParallelAccess& b, const ParallelLoop& loop,
                  const std::vector<Ref<Var>>& symbols) {
  return Pair(loop, symbols).proves_apart(a, b);
}

}  // namespace tenon::tir
