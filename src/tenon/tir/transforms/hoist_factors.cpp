// SPDX-License-Identifier: Apache-2.0
// Sums whose terms share a factor: the sum is multiplied once.
//
//     for k: acc[i] = acc[i] + a[k] * ((w[k, i] - z[i]) * s[i])
//
// becomes, with `part` and `sum` beside the accumulators in registers,
//
//     for k: part[i] = part[i] + a[k] * w[k, i];  sum = sum + a[k]
//     acc[i] = acc[i] + (part[i] - z[i] * sum) * s[i]
//
// Of an infinite a[k] that makes infinity less infinity, and of large ones products that overflow
// where a[k] * (w[k, i] - z[i]) does not. What is no number or infinite stays so in every sum that
// it goes into: where acc is finite at the end, everything before it was; where it is not, the sum
// is taken again as it was written.
//
// Where the terms are linear in products of 8 bits (T.dot4), these are summed up as integers:
//
//     for k: acc[i] = acc[i] + s[i] * (float32(dot4(w[k, i], a[k])) * t - z)
//
// becomes
//
//     for k: part[i] = part[i] + dot4(w[k, i], a[k])
//     acc[i] = acc[i] + s[i] * (float32(part[i]) * t - z * terms)
#include <algorithm>

#include "tenon/support/target.h"
#include "tenon/tir/analysis/integer_sum.h"
#include "tenon/tir/analysis/lane_lookup.h"
#include "tenon/tir/analysis/region.h"
#include "tenon/tir/transforms.h"

namespace tenon::tir {

namespace {

constexpr int64_t kFewestTerms = 8;     // of a sum that is multiplied at its end
constexpr int64_t kMostSums = 4;        // beside each other, of terms that are unrolled
constexpr int64_t kOtherRegisters = 4;  // operands of a step
// Operands of a step that looks floats up, for three vectors: what they are looked up of, themselves
// and the table.
constexpr int64_t kLookUpRegisters = 7;
constexpr int64_t kUnrolledProducts = 128;  // of terms that are written out
constexpr int64_t kTermsInMemory = 32;      // for which what is added to may wait in memory

bool uses_any(const Expr& expr, const std::vector<const For*>& loops) {
  return std::any_of(loops.begin(), loops.end(),
                     [&](const For* loop) { return uses_var(expr, loop->loop_var.get()); });
}

void add_factors(const Expr& expr, std::vector<Expr>& factors) {
  const auto* op = expr.as<Binary>();
  if (!op || op->op != BinaryOp::kMul) {
    factors.push_back(expr);
    return;
  }
  add_factors(op->lhs, factors);
  add_factors(op->rhs, factors);
}

Expr product(const std::vector<Expr>& factors) {
  Expr all = factors.at(0);
  for (size_t i = 1; i < factors.size(); ++i) all = all * factors[i];
  return all;
}

/// A sum into local memory: loops of its terms, and inside of them those over what is summed up.
struct Sum {
  std::vector<const For*> terms, places;
  std::vector<std::vector<Stmt>> hints;  // prefetches that stand first in each loop, terms first
  const BufferStore* store = nullptr;
  std::vector<Expr> hoisted, kept;  // factors of a term
  Expr zero;                        // what is taken off the last kept factor; may be null
  // Of terms that are linear in products of 8 bits: local memory for the sum of each.
  std::optional<IntegerSum> integers;
  std::vector<Ref<Buffer>> parts;
};

bool is_prefetch(const Stmt& stmt) {
  const auto* evaluated = stmt.as<Evaluate>();
  const auto* call = evaluated ? evaluated->value.as<Call>() : nullptr;
  return call && call->is(IntrinsicId::kPrefetch);
}

/// The only statement of a loop beside prefetches, where it is a loop.
const For* only_loop(const For& loop) {
  const std::vector<Stmt> body = stmts_of(loop.body);
  if (body.empty() || !std::all_of(body.begin(), body.end() - 1, is_prefetch)) return nullptr;
  return body.back().as<For>();
}

/// Terms of a sum; 0 where that is known only at run time, when there may be none and nothing to be
/// read of the factors.
int64_t terms_of(const Sum& sum) {
  int64_t terms = 1;
  for (const For* loop : sum.terms)
    terms = std::min(terms * as_int(loop->extent).value_or(0), int64_t{1} << 20);
  return terms;
}

/// Finds the integers whose sums the terms are linear in.
bool sum_integers(Sum& sum, const Expr& term) {
  const Buffer& buffer = *sum.store->buffer;
  std::vector<Ref<Buffer>> parts;
  sum.integers = integer_sum(
      term, terms_of(sum), [&](const Expr& expr) { return uses_any(expr, sum.terms); },
      [&](size_t i) -> Expr {
        parts.push_back(make<Buffer>(fmt::format("{}_part{}", buffer.name, i), kInt32, buffer.shape,
                                     Buffer::Options{.scope = "local"}, buffer.origin));
        return load(parts.back(), sum.store->indices);
      });
  sum.parts = std::move(parts);
  return sum.integers.has_value();
}

/// The loops from `first` to a store to local memory that adds to its own place.
std::optional<Sum> sum_of(const For& first) {
  Sum sum;
  std::vector<const For*> loops;
  const For* loop = &first;
  while (loop) {
    loops.push_back(loop);
    const std::vector<Stmt> body = stmts_of(loop->body);
    for (size_t i = 0; i + 1 < body.size(); ++i)
      if (!is_prefetch(body[i])) return std::nullopt;
    if (body.empty()) return std::nullopt;
    sum.hints.emplace_back(body.begin(), body.end() - 1);
    sum.store = body.back().as<BufferStore>();
    loop = body.back().as<For>();
  }
  if (!sum.store || sum.store->buffer->scope != "local") return std::nullopt;
  const DType dtype = sum.store->buffer->dtype;
  const auto* added = sum.store->value.as<Binary>();
  const auto* own = added && added->op == BinaryOp::kAdd ? added->lhs.as<BufferLoad>() : nullptr;
  if ((dtype != kFloat32 && dtype != kFloat64) || !own || !own->buffer.same_as(sum.store->buffer) ||
      !std::equal(own->indices.begin(), own->indices.end(), sum.store->indices.begin(),
                  sum.store->indices.end(),
                  [](const Expr& a, const Expr& b) { return structural_equal(a, b); }))
    return std::nullopt;
  for (const For* one : loops) {
    const bool is_place =
        std::any_of(sum.store->indices.begin(), sum.store->indices.end(),
                    [&](const Expr& index) { return uses_var(index, one->loop_var.get()); });
    if (is_place && !as_int(one->extent)) return std::nullopt;
    if (!is_place && !sum.places.empty()) return std::nullopt;
    (is_place ? sum.places : sum.terms).push_back(one);
  }
  for (size_t i = sum.terms.size(); i < sum.hints.size(); ++i)
    if (!sum.hints[i].empty()) return std::nullopt;
  if (sum_integers(sum, added->rhs)) return sum;
  std::vector<Expr> factors;
  add_factors(added->rhs, factors);
  for (const Expr& factor : factors)
    (uses_any(factor, sum.terms) ? sum.kept : sum.hoisted).push_back(factor);
  bool reads_itself = false, hoists = false;
  walk<BufferLoad>(added->rhs, [&](const BufferLoad& load) {
    reads_itself |= load.buffer.same_as(sum.store->buffer);
  });
  for (const Expr& factor : sum.hoisted)
    walk<BufferLoad>(factor, [&](const BufferLoad&) { hoists = true; });
  if (sum.terms.empty() || sum.kept.empty() || !hoists || reads_itself) return std::nullopt;
  return sum;
}

/// Local memory for sums beside each other, one for each step of the innermost loop.
class Partial {
 public:
  Partial(const Buffer& of, const char* suffix, std::vector<Expr> shape, int64_t sums)
      : sums_(sums) {
    if (sums > 1) shape.insert(shape.begin(), int64(sums));
    buffer = make<Buffer>(of.name + suffix, of.dtype, std::move(shape),
                          Buffer::Options{.scope = "local"}, of.origin);
  }

  Expr load(const std::vector<Expr>& indices, const Expr& step) const {
    return tir::load(buffer, at(indices, step));
  }
  Stmt store(const Expr& value, const std::vector<Expr>& indices, const Expr& step) const {
    return make<BufferStore>(buffer, value, at(indices, step));
  }
  Expr total(const std::vector<Expr>& indices) const {
    Expr all = load(indices, int64(0));
    for (int64_t i = 1; i < sums_; ++i) all = all + load(indices, int64(i));
    return all;
  }

  Ref<Buffer> buffer;

 private:
  std::vector<Expr> at(std::vector<Expr> indices, const Expr& step) const {
    if (sums_ > 1) indices.insert(indices.begin(), step);
    return indices;
  }
  int64_t sums_;
};

class Hoister final : public Rewriter {
 public:
  explicit Hoister(const Target& target) : target_(target) {}

 protected:
  NodePtr rewrite(const NodePtr& node) override {
    const auto* first = node.as<For>();
    if (!first || first->kind != ForKind::kSerial) return rewrite_members(node);
    // Loops around the terms that share a factor belong to the same sum: it is looked at once.
    std::vector<const For*> outer;
    for (const For* loop = first; loop && loop->kind == ForKind::kSerial; loop = only_loop(*loop)) {
      auto sum = sum_of(*loop);
      const int64_t least = sum && sum->integers ? 2 : kFewestTerms;
      const int64_t sums = sum && terms_of(*sum) >= least ? sums_of(*sum) : 0;
      if (sums > 0) {
        if (!is_one_sum(outer, *sum)) break;
        if (!sum->integers) take_off_zero(*sum);
        Stmt fast = sum->integers ? of_integers(*sum) : rebuilt(*sum, sums);
        while (!outer.empty()) {
          std::vector<Stmt> body = stmts_of(outer.back()->body);
          body.back() = fast;
          fast = outer.back()->with(outer.back()->min, outer.back()->extent, seq(std::move(body)));
          outer.pop_back();
        }
        return with_exact_sum(*first, *sum, fast);
      }
      outer.push_back(loop);
    }
    return rewrite_members(node);
  }

 private:
  /// Whether the places of the sum are the same in all of these loops.
  static bool is_one_sum(const std::vector<const For*>& outer, const Sum& sum) {
    return std::none_of(sum.store->indices.begin(), sum.store->indices.end(),
                        [&](const Expr& index) { return uses_any(index, outer); }) &&
           std::none_of(sum.places.begin(), sum.places.end(),
                        [&](const For* place) { return uses_any(place->min, outer); });
  }

  /// Sums beside each other, between which the steps of the unrolled innermost loop go around, so that
  /// additions wait less for others. 0: the registers do not hold any beside what there is.
  int64_t sums_of(const Sum& sum) const {
    int64_t elements = 1;
    for (const For* loop : sum.places) elements *= *as_int(loop->extent);
    const int64_t lanes = std::max(1, target_.vector_lanes(sum.store->buffer->dtype.bits));
    const int64_t vectors = (elements + lanes - 1) / lanes;
    const auto has_room = [&](int64_t sums) {
      return vectors * (1 + sums) + kOtherRegisters <= target_.vector_registers;
    };
    if (sum.integers) return has_room(static_cast<int64_t>(sum.parts.size())) ? 1 : 0;
    const For& last = *sum.terms.back();
    int64_t steps = as_int(last.extent).value_or(0);
    if (sum.terms.size() > 1 && last.kind == ForKind::kUnrolled && is_int(last.min, 0)) {
      while (steps > kMostSums && steps % 2 == 0) steps /= 2;
      for (; steps > 1 && steps <= kMostSums; steps = steps % 2 == 0 ? steps / 2 : 1)
        if (has_room(steps)) return steps;
    }
    if (has_room(1)) return 1;
    // With looked-up floats the product by the factor is one instruction of three for each vector of
    // them: the sum takes the registers, and what it is added to at its end waits in memory.
    const bool looks_up = has_lane_lookup(target_) &&
                          std::any_of(sum.kept.begin(), sum.kept.end(), [](const Expr& factor) {
                            return lane_lookup(factor).has_value();
                          });
    const bool fits = vectors + kLookUpRegisters <= target_.vector_registers;
    return looks_up && fits && terms_of(sum) >= kTermsInMemory ? 1 : 0;
  }

  /// (u - z) among the factors with z the same in all terms, where the other factors are the same
  /// for several vectors of places: z is taken off the sum instead.
  void take_off_zero(Sum& sum) const {
    for (size_t i = 0; i < sum.kept.size(); ++i) {
      const auto* op = sum.kept[i].as<Binary>();
      if (!op || op->op != BinaryOp::kSub || uses_any(op->rhs, sum.terms)) continue;
      if (has_lane_lookup(target_) && lane_lookup(sum.kept[i])) return;  // costs nothing
      std::vector<Expr> others = sum.kept;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
      if (others.empty()) return;
      int64_t shared = 1;
      for (const For* place : sum.places) {
        const bool moves = uses_any(product(others), {place});
        if (moves && place->kind == ForKind::kVectorized) return;
        if (!moves && place->kind != ForKind::kVectorized) shared *= *as_int(place->extent);
      }
      if (shared < 2) return;
      sum.zero = op->rhs;
      others.push_back(op->lhs);
      sum.kept = std::move(others);
      return;
    }
  }

  /// `body` in loops over fresh variables of `places`.
  static Stmt around(const std::vector<const For*>& places,
                     const std::function<Stmt(const Substitution&)>& body) {
    Substitution values;
    std::vector<Ref<Var>> fresh;
    for (const For* place : places) {
      fresh.push_back(var(place->loop_var->name, place->loop_var->dtype));
      values[place->loop_var.get()] = fresh.back();
    }
    Stmt stmt = body(values);
    for (size_t i = places.size(); i-- > 0;)
      stmt = make<For>(fresh[i], places[i]->min, places[i]->extent, places[i]->kind, stmt);
    return stmt;
  }

  static std::vector<Expr> replaced(const std::vector<Expr>& exprs, const Substitution& values) {
    std::vector<Expr> out;
    for (const Expr& expr : exprs) out.push_back(substitute(expr, values));
    return out;
  }

  static Stmt rebuilt(const Sum& sum, int64_t sums) {
    const Ref<Buffer>& buffer = sum.store->buffer;
    Expr step = sum.terms.back()->loop_var;
    if (!is_int(sum.terms.back()->extent, sums)) step = floormod(step, sums);
    // The product without its last factor is summed up by itself where a zero is taken off that.
    std::vector<Expr> others = sum.kept;
    if (sum.zero) others.pop_back();
    std::vector<const For*> rows;
    std::vector<Expr> row_shape, row;
    for (const For* place : sum.places) {
      if (!sum.zero || !uses_any(product(others), {place})) continue;
      rows.push_back(place);
      row_shape.push_back(place->extent);
      row.push_back(Expr(place->loop_var) - place->min);
    }
    if (row.empty()) {
      row_shape.push_back(int64(1));
      row.push_back(int64(0));
    }
    const Partial part(*buffer, "_part", buffer->shape, sums);
    const Partial shared(*buffer, "_sum", row_shape, sums);
    const auto is_zeroed = [&](const Partial& partial, const std::vector<const For*>& places,
                               const std::vector<Expr>& indices, std::vector<Stmt>& out) {
      for (int64_t i = 0; i < sums; ++i)
        out.push_back(around(places, [&](const Substitution& values) {
          return partial.store(imm(buffer->dtype, 0.0), replaced(indices, values), int64(i));
        }));
    };
    std::vector<Stmt> out{make<AllocBuffer>(part.buffer, Attrs{}, buffer->origin)};
    if (sum.zero) out.push_back(make<AllocBuffer>(shared.buffer, Attrs{}, buffer->origin));
    is_zeroed(part, sum.places, sum.store->indices, out);
    if (sum.zero) is_zeroed(shared, rows, row, out);
    std::vector<Stmt> body;
    if (sum.zero)
      body.push_back(around(rows, [&](const Substitution& values) {
        const std::vector<Expr> at = replaced(row, values);
        return shared.store(shared.load(at, step) + substitute(product(others), values), at, step);
      }));
    body.push_back(around(sum.places, [&](const Substitution& values) {
      const std::vector<Expr> at = replaced(sum.store->indices, values);
      return part.store(part.load(at, step) + substitute(product(sum.kept), values), at, step);
    }));
    Stmt terms = seq(std::move(body));
    for (size_t i = sum.terms.size(); i-- > 0;) {
      std::vector<Stmt> inside = sum.hints[i];
      inside.push_back(terms);
      terms = sum.terms[i]->with(sum.terms[i]->min, sum.terms[i]->extent, seq(std::move(inside)));
    }
    out.push_back(terms);
    out.push_back(around(sum.places, [&](const Substitution& values) {
      const std::vector<Expr> at = replaced(sum.store->indices, values);
      Expr all = part.total(at);
      if (sum.zero) all = all - substitute(sum.zero, values) * shared.total(replaced(row, values));
      return make<BufferStore>(
          buffer, load(buffer, at) + all * substitute(product(sum.hoisted), values), at);
    }));
    return seq(std::move(out));
  }

  /// The sum by those of integers. Terms are written out where they are few.
  static Stmt of_integers(const Sum& sum) {
    const Ref<Buffer>& buffer = sum.store->buffer;
    std::vector<Stmt> out, body;
    int64_t products = terms_of(sum);
    for (size_t i = 0; i < sum.parts.size(); ++i) {
      const Ref<Buffer>& part = sum.parts[i];
      out.push_back(make<AllocBuffer>(part, Attrs{}, buffer->origin));
      out.push_back(around(sum.places, [&](const Substitution& values) {
        return make<BufferStore>(part, int32(0), replaced(sum.store->indices, values));
      }));
      body.push_back(around(sum.places, [&](const Substitution& values) {
        const std::vector<Expr> at = replaced(sum.store->indices, values);
        return make<BufferStore>(
            part, load(part, at) + substitute(sum.integers->products[i], values), at);
      }));
    }
    for (const For* place : sum.places)
      if (place->kind != ForKind::kVectorized) products *= *as_int(place->extent);
    const bool unrolls = products * static_cast<int64_t>(sum.parts.size()) <= kUnrolledProducts;
    Stmt terms = seq(std::move(body));
    for (size_t i = sum.terms.size(); i-- > 0;) {
      std::vector<Stmt> inside = sum.hints[i];
      inside.push_back(terms);
      terms = make<For>(sum.terms[i]->loop_var, sum.terms[i]->min, sum.terms[i]->extent,
                        unrolls ? ForKind::kUnrolled : sum.terms[i]->kind, seq(std::move(inside)));
    }
    out.push_back(terms);
    out.push_back(around(sum.places, [&](const Substitution& values) {
      const std::vector<Expr> at = replaced(sum.store->indices, values);
      return make<BufferStore>(buffer, load(buffer, at) + substitute(sum.integers->total, values),
                               at);
    }));
    return seq(std::move(out));
  }

  static Ref<Buffer> local(const Buffer& of, const char* suffix, std::vector<Expr> shape) {
    return make<Buffer>(of.name + suffix, of.dtype, std::move(shape),
                        Buffer::Options{.scope = "local"}, of.origin);
  }

  /// Whether a place of the sum is infinite or no number, as a value that follows the statements
  /// that are added to `out`: x - x is 0 of what is finite and NaN of the rest, and is added up for
  /// each lane and then over the lanes.
  static Expr is_odd(const Sum& sum, std::vector<Stmt>& out) {
    const Ref<Buffer>& buffer = sum.store->buffer;
    const auto lane = std::find_if(sum.places.begin(), sum.places.end(), [](const For* place) {
      return place->kind == ForKind::kVectorized;
    });
    const bool has_lanes = lane != sum.places.end();
    const Expr lanes = has_lanes ? (*lane)->extent : int64(1);
    const Expr at_lane = has_lanes ? Expr((*lane)->loop_var) - (*lane)->min : int64(0);
    const Ref<Buffer> odd = local(*buffer, "_odd", {lanes});
    const Expr zero = imm(buffer->dtype, 0.0);
    const auto in_lanes = [&](const Expr& lanes, const std::function<Stmt(const Expr&)>& body) {
      const Ref<Var> l = var("lane", lanes->dtype);
      out.push_back(make<For>(l, imm(lanes->dtype, int64_t{0}), lanes,
                              has_lanes ? ForKind::kVectorized : ForKind::kSerial, body(l)));
    };
    const auto add = [&](const Expr& value, const Expr& l) {
      return make<BufferStore>(odd, load(odd, {l}) + value, std::vector<Expr>{l});
    };
    out.push_back(make<AllocBuffer>(odd, Attrs{}, buffer->origin));
    in_lanes(lanes,
             [&](const Expr& l) { return make<BufferStore>(odd, zero, std::vector<Expr>{l}); });
    out.push_back(around(sum.places, [&](const Substitution& values) {
      const Expr x = load(buffer, replaced(sum.store->indices, values));
      return add(x - x, substitute(at_lane, values));
    }));
    // The upper lanes to the lower ones.
    for (int64_t left = *as_int(lanes); left > 1;) {
      const int64_t half = left / 2;
      in_lanes(imm(lanes->dtype, half),
               [&](const Expr& l) { return add(load(odd, {l + (left - half)}), l); });
      left -= half;
    }
    return logical_not(
        call(IntrinsicId::kLikely, {binary(BinaryOp::kEQ, load(odd, {int64(0)}), zero)}));
  }

  /// `fast`, and where a place is not finite after it the loops of `first` as they were written, from
  /// what the places held before. That goes through memory of its own, and one by one: it is rare,
  /// and the places, and constants of the terms, stay in registers.
  static Stmt with_exact_sum(const For& first, const Sum& sum, const Stmt& fast) {
    const Ref<Buffer>& buffer = sum.store->buffer;
    const auto copy = [&](const Ref<Buffer>& from, const Ref<Buffer>& to) {
      return around(sum.places, [&](const Substitution& values) {
        const std::vector<Expr> at = replaced(sum.store->indices, values);
        return make<BufferStore>(to, load(from, at), at);
      });
    };
    const Ref<Buffer> exact = local(*buffer, "_exact", buffer->shape);
    const Stmt again =
        tenon::rewrite(renew_definitions(substitute(Stmt(&first), {{buffer.get(), exact}})),
                       [](const NodePtr& node) -> std::optional<NodePtr> {
                         const auto* loop = node.as<For>();
                         if (!loop || loop->kind == ForKind::kSerial) return std::nullopt;
                         return make<For>(loop->loop_var, loop->min, loop->extent, ForKind::kSerial,
                                          loop->body, loop->annotations, loop->origin);
                       });
    std::vector<Stmt> out{make<AllocBuffer>(exact, Attrs{}, buffer->origin), copy(buffer, exact),
                          fast};
    const Expr odd = is_odd(sum, out);
    out.push_back(make<IfThenElse>(odd, seq({again, copy(exact, buffer)})));
    return seq(std::move(out));
  }

  const Target& target_;
};

}  // namespace

IRModule hoist_factors(IRModule module) {
  const auto text = module.attrs.get<std::string>("target");
  const Target target = parse_target(text ? *text : "llvm");
  return map_kernels(std::move(module), [&](const Ref<PrimFunc>& function) {
    Hoister hoister(target);
    return hoister(function);
  });
}

}  // namespace tenon::tir
