// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/analysis/witness.h"

#include <algorithm>
#include <unordered_set>

#include "tenon/tir/analysis/points.h"

namespace tenon::tir {

using Kind = AccessCheck::Kind;

namespace {

// Iterations that are looked at one by one, and corners that are tried.
constexpr int64_t kMostPoints = int64_t{1} << 15;
constexpr int kMostCorners = 128;

void add_vars(const Expr& expr, std::unordered_set<const Node*>& out) {
  if (expr) walk<Var>(expr, [&](const Var& var) { out.insert(&var); });
}

// Whether a value can be had from the variables alone.
bool is_plain(const Expr& expr) {
  bool plain = true;
  walk_if(expr, [&](const NodePtr& node) {
    if (node.as<BufferLoad>()) plain = false;
    if (const auto* call = node.as<Call>()) plain &= call->op && call->op->effect == Effect::kPure;
    return plain;
  });
  return plain;
}

}  // namespace

struct Search::Question {
  const AccessCheck& check;
  const Expr& written;
  const std::vector<Running>& loops;
  const std::vector<Expr>& guards;
  const Substitution& values;
  std::unordered_set<const Node*> relevant;  // variables of loops that decide

  bool is_relevant(const Running& loop) const { return relevant.count(loop.var.get()) > 0; }
};

Search::Answer Search::decide(const AccessCheck& check, const Expr& written,
                              const std::vector<Running>& loops, const std::vector<Expr>& guards,
                              const std::vector<Ref<Var>>& symbols, const Substitution& values) {
  Question question{check, written, loops, guards, values, {}};
  for (const Expr& part : {check.index, check.length, check.extent})
    add_vars(part, question.relevant);
  for (const Expr& guard : guards)
    if (is_plain(guard)) add_vars(guard, question.relevant);
  for (size_t i = loops.size(); i-- > 0;) {
    if (!question.is_relevant(loops[i])) continue;
    add_vars(loops[i].min, question.relevant);
    add_vars(loops[i].extent, question.relevant);
  }
  const Answer answer = every_iteration(question);
  if (answer != Answer::kOpen) return answer;
  if (!is_plain(check.index)) return Answer::kOpen;
  return at_corners(question, symbols) ? Answer::kOutside : Answer::kOpen;
}

// ---- every iteration ----------------------------------------------------------------------------

Search::Answer Search::every_iteration(const Question& question) {
  std::vector<const Running*> order;
  bool happens = true;  // all other loops run
  int64_t points = 1;
  for (const Running& loop : question.loops) {
    const auto extent = as_int(loop.extent);
    if (!question.is_relevant(loop)) {
      if (extent && *extent <= 0) return Answer::kInside;
      happens = happens && extent;
      continue;
    }
    order.push_back(&loop);
    if (extent && *extent > 0 && __builtin_mul_overflow(points, *extent, &points))
      return Answer::kOpen;
    if (points > kMostPoints) return Answer::kOpen;
  }
  const AccessCheck& check = question.check;
  Point point;
  int64_t left = kMostPoints;
  bool open = false, hit = false;
  const std::function<bool(size_t)> run = [&](size_t depth) {  // false: it is decided
    if (depth < order.size()) {
      const auto min = value_at(order[depth]->min, point);
      const auto extent = value_at(order[depth]->extent, point);
      if (!min || !extent) {
        open = true;
        return false;
      }
      int64_t& at = point[order[depth]->var.get()];
      for (int64_t k = 0; k < *extent; ++k) {
        at = *min + k;
        if (!run(depth + 1)) return false;
      }
      return true;
    }
    if (--left < 0) {
      open = true;
      return false;
    }
    bool holds = happens;
    for (const Expr& guard : question.guards) {
      const auto value = value_at(guard, point);
      if (value && *value == 0) return true;
      holds = holds && value;
    }
    const auto index = value_at(check.index, point);
    const auto length = check.length ? value_at(check.length, point) : std::optional<int64_t>(1);
    const auto extent = check.extent ? value_at(check.extent, point) : std::optional<int64_t>(0);
    if (!index || !length || !extent) {
      open = true;
      return false;
    }
    const bool good = check.kind == Kind::kDivisor ? *index != 0
                      : check.kind == Kind::kView
                          ? *index <= *extent
                          : *index >= 0 && *index <= *extent && *length <= *extent - *index &&
                                (check.kind != Kind::kPointer || *length >= 0);
    if (good) return true;
    if (!holds) {
      open = true;  // another iteration may show it
      return true;
    }
    hit = true;
    return false;
  };
  run(0);
  if (!hit) return open ? Answer::kOpen : Answer::kInside;
  Substitution at;
  for (const auto& [var, value] : point) at[var] = imm(var->dtype, value);
  arith::Analyzer analyzer;
  found(question, at, analyzer);
  return Answer::kOutside;
}

// ---- corners ------------------------------------------------------------------------------------

// Values of `var` next to where `guard` begins or ends to hold.
static void add_turns(const Expr& guard, const Ref<Var>& var, const Substitution& at,
                      arith::Analyzer& analyzer, std::vector<Expr>& out) {
  const auto* test = guard.as<Binary>();
  if (!test || !is_comparison(test->op) || !test->lhs->dtype.is_int()) return;
  const Expr gap = substitute(cast(kInt64, test->lhs) - cast(kInt64, test->rhs), at);
  const Ref<Var> vars[] = {var};
  const auto form = analyzer.linear(gap, vars);
  if (!form) return;
  const auto factor = as_int(form->coefficients[0]);
  if (!factor || (*factor != 1 && *factor != -1)) return;
  const Expr root = *factor == 1 ? int64(0) - form->rest : form->rest;
  for (const int64_t step : {-1, 0, 1}) out.push_back(analyzer.simplify(root + step));
}

bool Search::at_corners(const Question& question, const std::vector<Ref<Var>>& symbols) {
  const AccessCheck& check = question.check;
  arith::Analyzer analyzer;
  for (const Ref<Var>& symbol : symbols) analyzer.bind_lower(symbol, 1);
  Substitution at;
  int corners = 0;
  const auto here = [&](const Expr& expr) {
    return at.empty() || !expr ? expr : substitute(expr, at);
  };
  const std::function<bool(size_t)> run = [&](size_t depth) {  // true: it is found
    if (depth < question.loops.size()) {
      const Running& loop = question.loops[depth];
      const Expr min = here(loop.min), extent = here(loop.extent);
      const Expr one = imm(extent->dtype, int64_t{1});
      if (analyzer.proves(extent < one)) return false;
      const auto scope = analyzer.enter(extent >= one);
      std::vector<Expr> values{min};
      if (question.is_relevant(loop)) {
        values.push_back(analyzer.simplify(min + extent - 1));
        const size_t sure = values.size();
        for (const Expr& guard : question.guards)
          if (values.size() < 16) add_turns(guard, loop.var, at, analyzer, values);
        values.erase(
            std::remove_if(values.begin() + static_cast<std::ptrdiff_t>(sure), values.end(),
                           [&](const Expr& value) {
                             return !analyzer.proves(value >= min) ||
                                    !analyzer.proves(value < min + extent);
                           }),
            values.end());
      }
      for (const Expr& value : values) {
        at[loop.var.get()] = cast(loop.var->dtype, value);
        if (run(depth + 1)) return true;
        if (corners >= kMostCorners) break;
      }
      at.erase(loop.var.get());
      return false;
    }
    ++corners;
    for (const Expr& guard : question.guards)
      if (!guard->dtype.is_scalar() || !analyzer.proves(here(guard))) return false;
    const Expr index = analyzer.simplify(here(check.index));
    const Expr zero = imm(index->dtype, int64_t{0});
    bool outside = false;
    if (check.kind == Kind::kDivisor) {
      outside = analyzer.proves_equal(index, zero);
    } else if (check.kind == Kind::kView) {
      outside = analyzer.proves(index > here(check.extent));
    } else {
      const Expr end = check.length ? index + here(check.length) : index + 1;
      outside = analyzer.proves(index < zero) || analyzer.proves(end > here(check.extent));
    }
    if (outside) found(question, at, analyzer);
    return outside;
  };
  return run(0);
}

void Search::found(const Question& question, const Substitution& at, arith::Analyzer& analyzer) {
  const auto text = [&](const Expr& expr) {
    return expr ? str(analyzer.simplify(at.empty() ? expr : substitute(expr, at))) : std::string();
  };
  value_ = text(question.check.index);
  if (const Expr& length = question.check.length)
    value_ += ":" + text(question.check.index + length);
  extent_ = text(question.check.extent);
  iteration_.clear();
  std::vector<const Var*> named;
  walk<Var>(question.written, [&](const Var& var) {
    if (std::find(named.begin(), named.end(), &var) == named.end()) named.push_back(&var);
  });
  for (const Var* var : named) {
    Expr value;
    if (const auto running = at.find(var); running != at.end())
      value = downcast<ExprNode>(running->second);
    else if (const auto axis = question.values.find(var); axis != question.values.end())
      value = substitute(downcast<ExprNode>(axis->second), at);
    if (!value) continue;
    iteration_ += fmt::format("{}{} = {}", iteration_.empty() ? "" : ", ", var->name,
                              str(analyzer.simplify(value)));
  }
}

}  // namespace tenon::tir
