// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/schedule/roles.h"

#include <algorithm>
#include <unordered_set>

#include "tenon/tir/schedule/edit.h"

namespace tenon::tir {

// An axis of which `axis // c` and `axis % c` are used, and which has no whole number of c: it is
// not split in two, and where it is a reduction's, each of its steps may be anywhere.
static bool jumps(const IterVar& iter, int64_t divisor) {
  const auto extent = as_int(iter.domain.extent);
  return iter.kind == IterKind::kReduce && extent && *extent % divisor != 0;
}

// Smallest constant c > 1 of `axis // c` and `axis % c` by axis, 0 where there is none.
static std::vector<int64_t> smallest_divisors(const Block& block) {
  std::vector<int64_t> out(block.iter_vars.size(), 0);
  walk<Binary>(block.body, [&](const Binary& op) {
    if (op.op != BinaryOp::kFloorDiv && op.op != BinaryOp::kFloorMod) return;
    const auto divisor = as_int(op.rhs);
    if (!divisor || *divisor < 2) return;
    for (size_t a = 0; a < out.size(); ++a)
      if (op.lhs.same_as(block.iter_vars[a].var) && (out[a] == 0 || *divisor < out[a]))
        out[a] = *divisor;
  });
  return out;
}

static bool uses_any(const Expr& expr, const std::vector<Ref<Var>>& axes) {
  return std::any_of(axes.begin(), axes.end(),
                     [&](const Ref<Var>& axis) { return uses_var(expr, axis.get()); });
}

// The axes of which an index is an element: of a gather.
static std::vector<Ref<Var>> gathering_axes(const BufferLoad& load,
                                            const std::vector<Ref<Var>>& axes) {
  std::vector<Ref<Var>> out;
  for (const Expr& index : load.indices)
    walk<BufferLoad>(index, [&](const BufferLoad& inner) {
      for (const Ref<Var>& axis : axes)
        if (uses_var(ref_to(&inner), axis.get()) &&
            std::none_of(out.begin(), out.end(), [&](const auto& o) { return o.same_as(axis); }))
          out.push_back(axis);
    });
  return out;
}

static std::optional<LinearAccess> linear_access(const Ref<Buffer>& buffer,
                                                 const std::vector<Expr>& indices,
                                                 const std::vector<Ref<Var>>& axes,
                                                 const std::vector<Ref<Var>>& jumping,
                                                 arith::Analyzer& analyzer, bool gathers = false) {
  const std::vector<Expr> strides =
      buffer->strides.empty() ? compact_strides(buffer->shape) : buffer->strides;
  LinearAccess access{buffer, {}, std::vector<LinearAccess::Step>(axes.size())};
  for (size_t a = 0; a < axes.size(); ++a) access.strides.push_back(int64(0));
  // What an axis that jumps does to an index is part of the rest; its stride is no number.
  std::vector<Ref<Var>> even;
  std::vector<size_t> places;
  for (size_t a = 0; a < axes.size(); ++a) {
    const bool is_even = std::none_of(jumping.begin(), jumping.end(),
                                      [&](const auto& axis) { return axis.same_as(axes[a]); });
    if (is_even) {
      even.push_back(axes[a]);
      places.push_back(a);
      continue;
    }
    const bool used = std::any_of(indices.begin(), indices.end(), [&](const Expr& index) {
      return uses_var(index, axes[a].get());
    });
    if (used) access.strides[a] = axes[a];
  }
  const auto add = [&](const Expr& index, const Expr& scale, std::optional<size_t> dim) {
    if (!index->dtype.is_scalar()) return false;
    const auto form = analyzer.linear(index, even);
    if (!form) return false;
    bool jumps = false;
    walk<BufferLoad>(form->rest, [&](const BufferLoad& load) {
      jumps = jumps || !gathers || uses_any(ref_to(&load), even);
    });
    if (jumps) return false;
    for (size_t a = 0; a < even.size(); ++a) {
      if (is_zero(form->coefficients[a])) continue;
      Expr& stride = access.strides[places[a]];
      access.steps[places[a]] = {is_zero(stride) ? dim : std::nullopt, form->coefficients[a]};
      stride = stride + form->coefficients[a] * scale;
    }
    return true;
  };
  bool linear = true;
  for (size_t d = 0; d < indices.size() && linear; ++d) linear = add(indices[d], strides[d], d);
  if (!linear) {
    access.steps.assign(axes.size(), {});
    // Quotient and remainder of joined axes may be linear together.
    Expr place = int64(0);
    for (size_t d = 0; d < indices.size(); ++d) {
      if (!indices[d]->dtype.is_scalar()) return std::nullopt;
      place = place + indices[d] * strides[d];
    }
    for (const size_t a : places) access.strides[a] = int64(0);
    if (!add(analyzer.simplify(place), int64(1), std::nullopt)) return std::nullopt;
  }
  for (Expr& stride : access.strides) stride = analyzer.simplify(stride);
  return access;
}

std::optional<BlockAccesses> linear_accesses(const Block& block, bool takes_gathers) {
  const BufferStore* store = only_store(block);
  if (!store) return std::nullopt;
  arith::Analyzer analyzer;
  const std::vector<int64_t> divisors = smallest_divisors(block);
  std::vector<Ref<Var>> axes, jumping;
  for (size_t a = 0; a < block.iter_vars.size(); ++a) {
    const IterVar& iter = block.iter_vars[a];
    axes.push_back(iter.var);
    analyzer.bind(iter.var, iter.domain);
    if (divisors[a] != 0 && jumps(iter, divisors[a])) jumping.push_back(iter.var);
  }
  const auto target = linear_access(store->buffer, store->indices, axes, {}, analyzer);
  if (!target) return std::nullopt;
  BlockAccesses out{*target, {}};
  bool linear = true;
  std::vector<const BufferLoad*> seen;
  std::unordered_set<const Node*> places;  // loads that say where others are
  if (takes_gathers)
    walk<BufferLoad>(store->value, [&](const BufferLoad& load) {
      for (const Expr& index : load.indices)
        walk<BufferLoad>(index, [&](const BufferLoad& inner) { places.insert(&inner); });
    });
  walk<BufferLoad>(store->value, [&](const BufferLoad& load) {
    if (load.buffer.same_as(store->buffer) || places.count(&load)) return;
    for (const BufferLoad* other : seen)
      if (structural_equal(ref_to(other), ref_to(&load))) return;
    seen.push_back(&load);
    auto access = linear_access(load.buffer, load.indices, axes, {}, analyzer);
    if (!access && !jumping.empty())
      access = linear_access(load.buffer, load.indices, axes, jumping, analyzer);
    if (!access && takes_gathers)
      access = linear_access(load.buffer, load.indices, axes, gathering_axes(load, axes), analyzer,
                             true);
    if (access)
      out.loads.push_back(*access);
    else
      linear = false;
  });
  return linear ? std::optional(out) : std::nullopt;
}

std::vector<int64_t> div_mod_divisors(const Block& block) {
  std::vector<int64_t> out = smallest_divisors(block);
  for (size_t a = 0; a < out.size(); ++a)
    if (out[a] != 0 && jumps(block.iter_vars[a], out[a])) out[a] = 0;
  return out;
}

std::optional<LoopRV> loop_of_axis(Schedule& schedule, const BlockRV& block, size_t axis) {
  const Ref<BlockRealize> realize = schedule.realize(block);
  const Path path = find_block(schedule.func()->body, block.name);
  std::optional<LoopRV> out;
  for (const Ref<For>& loop : loops_of(path))
    if (uses_var(realize->iter_values.at(axis), loop->loop_var.get())) out = LoopRV{loop->loop_var};
  // The trace must have seen the loop for others to use it.
  if (out && !schedule.is_named(*out)) schedule.get_loops(block);
  return out;
}

int64_t extent_of(const IterVar& iter) { return as_int(iter.domain.extent).value_or(0); }

int64_t divisor_at_least(int64_t n, int64_t wanted) {
  for (int64_t d = std::max<int64_t>(wanted, 1); d <= n; ++d)
    if (n % d == 0) return d;
  return n;
}

}  // namespace tenon::tir
