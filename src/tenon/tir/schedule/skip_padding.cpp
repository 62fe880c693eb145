// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/schedule/skip_padding.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "tenon/arith/analyzer.h"
#include "tenon/tir/schedule/edit.h"

namespace tenon::tir {

namespace {

// Where a padded buffer holds data along a dimension: from `first`, before `last`.
struct Data {
  int64_t first, last, extent;
};
// By buffer, then by dimension.
using Paddings = std::unordered_map<const Node*, std::map<size_t, Data>>;

void conditions_of(const Expr& condition, std::vector<Expr>& out) {
  if (const auto* both = condition.as<Binary>(); both && both->op == BinaryOp::kAnd) {
    conditions_of(both->lhs, out);
    conditions_of(both->rhs, out);
  } else {
    out.push_back(condition);
  }
}

// Takes in a condition that bounds one of `axes` by a number.
void narrow(const Binary& condition, const std::vector<Ref<Var>>& axes, std::vector<Data>& data) {
  const bool is_below = condition.op == BinaryOp::kLT || condition.op == BinaryOp::kLE;
  const bool is_above = condition.op == BinaryOp::kGT || condition.op == BinaryOp::kGE;
  if (!is_below && !is_above) return;
  arith::Analyzer analyzer;
  const auto form = analyzer.linear(condition.lhs - condition.rhs, axes);
  const auto rest = form ? as_int(analyzer.simplify(form->rest)) : std::nullopt;
  if (!rest) return;
  for (size_t a = 0; a < axes.size(); ++a) {
    const auto sign = as_int(form->coefficients[a]);
    if (!sign) return;
    if (*sign == 0) continue;
    for (size_t b = a + 1; b < axes.size(); ++b)
      if (!is_zero(form->coefficients[b])) return;
    if (*sign != 1 && *sign != -1) return;
    // sign * axis + rest, compared with 0.
    const bool is_strict = condition.op == BinaryOp::kLT || condition.op == BinaryOp::kGT;
    const int64_t edge = *sign == 1 ? -*rest : *rest;
    if (is_above == (*sign == 1))
      data[a].first = std::max(data[a].first, edge + (is_strict ? 1 : 0));
    else
      data[a].last = std::min(data[a].last, edge + (is_strict ? 0 : 1));
    return;
  }
}

Paddings paddings_of(const PrimFunc& definition) {
  Paddings out;
  walk<Block>(definition.body, [&](const Block& block) {
    const BufferStore* store = only_store(block);
    const auto* guard = store ? store->value.as<Call>() : nullptr;
    if (!guard || !guard->is(IntrinsicId::kIfThenElse)) return;
    const auto outside = downcast<ExprNode>(guard->args.at(2));
    if (as_int(outside) != 0 && as_float(outside) != 0.0) return;
    std::vector<Ref<Var>> axes;
    std::vector<Data> data;
    std::vector<size_t> dims;
    for (size_t d = 0; d < store->indices.size(); ++d)
      for (const IterVar& iter : block.iter_vars) {
        const auto extent = as_int(iter.domain.extent);
        if (!store->indices[d].same_as(iter.var) || !extent) continue;
        axes.push_back(iter.var);
        data.push_back({0, *extent, *extent});
        dims.push_back(d);
      }
    std::vector<Expr> conditions;
    conditions_of(downcast<ExprNode>(guard->args.at(0)), conditions);
    for (const Expr& condition : conditions)
      if (const auto* comparison = condition.as<Binary>()) narrow(*comparison, axes, data);
    for (size_t a = 0; a < axes.size(); ++a)
      if (data[a].first > 0 || data[a].last < data[a].extent)
        out[store->buffer.get()].emplace(dims[a], data[a]);
  });
  return out;
}

// Whether at least a quarter of the places that `taps`, so far apart, read hold no data.
bool skips_enough(const Data& data, int64_t taps, int64_t apart) {
  const int64_t windows = data.extent - apart * (taps - 1);
  int64_t meeting = 0;
  for (int64_t tap = 0; tap < taps; ++tap) {
    const int64_t first = std::max(tap * apart, data.first);
    meeting += std::max<int64_t>(0, std::min(tap * apart + windows, data.last) - first);
  }
  return windows > 0 && 4 * meeting <= 3 * taps * windows;
}

// What a block adds to its sum: an element of a padded buffer times something.
struct PaddedProduct {
  const BufferLoad* padded;
  Expr factor;
};

std::optional<PaddedProduct> product_of(const Block& block, const Paddings& paddings) {
  const BufferStore* store = only_store(block);
  const auto* sum = store ? store->value.as<Binary>() : nullptr;
  const auto* self = sum && sum->op == BinaryOp::kAdd ? sum->lhs.as<BufferLoad>() : nullptr;
  const auto* product = self ? sum->rhs.as<Binary>() : nullptr;
  if (!self || !self->buffer.same_as(store->buffer) || !product || product->op != BinaryOp::kMul)
    return std::nullopt;
  for (const bool left : {true, false}) {
    const Expr& side = left ? product->lhs : product->rhs;
    const auto* cast = side.as<Cast>();
    const auto* load = cast ? cast->value.as<BufferLoad>() : side.as<BufferLoad>();
    if (load && paddings.count(load->buffer.get()))
      return PaddedProduct{load, left ? product->rhs : product->lhs};
  }
  return std::nullopt;
}

// `factor` without casts after which a finite element is finite.
Expr without_wide_casts(Expr factor) {
  for (const auto* cast = factor.as<Cast>(); cast; cast = factor.as<Cast>()) {
    const DType from = cast->value->dtype;
    if (cast->dtype.bits < (from.is_float() ? std::max<int>(32, from.bits) : 32)) break;
    factor = cast->value;
  }
  return factor;
}

// Whether zeros times `factor` are zeros, where elements of `finite` buffers are finite.
bool is_finite(const Expr& factor, const std::unordered_set<const Node*>& finite) {
  if (!factor->dtype.is_float()) return true;
  const Expr inner = without_wide_casts(factor);
  if (!inner->dtype.is_float()) return true;
  if (const auto constant = as_float(inner)) return std::isfinite(*constant);
  const auto* load = inner.as<BufferLoad>();
  return load && finite.count(load->buffer.get());
}

// Without buffers of which an element is multiplied with what may not be finite.
Paddings with_finite_factors(Paddings paddings, const PrimFunc& definition) {
  std::unordered_set<const Node*> finite;
  for (const int64_t i : definition.attrs.ints(kFiniteParams).value_or(std::vector<int64_t>{}))
    if (i >= 0 && i < static_cast<int64_t>(definition.buffers.size()))
      finite.insert(definition.buffers[static_cast<size_t>(i)].get());
  walk<Block>(definition.body, [&](const Block& block) {
    if (const auto product = product_of(block, paddings);
        product && !is_finite(product->factor, finite))
      paddings.erase(product->padded->buffer.get());
  });
  return paddings;
}

// Whether `index`, of an element of a padded buffer, moves with an axis that is reduced, by taps of
// which many meet no data.
bool often_misses(const Expr& index, const Block& block, const Data& data) {
  arith::Analyzer analyzer;
  std::vector<Ref<Var>> axes;
  for (const IterVar& iter : block.iter_vars) axes.push_back(iter.var);
  const auto form = analyzer.linear(index, axes);
  if (!form) return false;
  for (size_t a = 0; a < axes.size(); ++a) {
    const auto taps = as_int(block.iter_vars[a].domain.extent),
               apart = as_int(form->coefficients[a]);
    if (block.iter_vars[a].kind == IterKind::kReduce && taps && apart && *taps > 1 && *apart > 0 &&
        skips_enough(data, *taps, *apart))
      return true;
  }
  return false;
}

// A loop over taps: the first one, and how many.
struct Steps {
  Expr first, count;
};

class Skipper {
 public:
  explicit Skipper(const Paddings& paddings) : paddings_(paddings) {}

  /// The steps of a loop that meet data; nothing where it is no loop over taps of a padding, or where
  /// nearly all do.
  std::optional<Steps> steps_of(const For& loop) const {
    const auto taps = as_int(loop.extent);
    if (loop.kind != ForKind::kSerial || !taps || *taps < 2 || !is_zero(loop.min))
      return std::nullopt;
    const BlockRealize* update = nullptr;
    bool is_alone = true;
    walk<BlockRealize>(loop.body, [&](const BlockRealize& realize) {
      if (realize.block->writes.empty()) return;
      is_alone = is_alone && !update;
      update = &realize;
    });
    if (!update || !is_alone || !is_int(update->predicate, 1) ||
        !accumulating_store(*update->block))
      return std::nullopt;
    const Block& block = *update->block;
    Substitution values;
    for (size_t a = 0; a < block.iter_vars.size(); ++a) {
      if (block.iter_vars[a].kind != IterKind::kReduce &&
          uses_var(update->iter_values[a], loop.loop_var.get()))
        return std::nullopt;
      values[block.iter_vars[a].var.get()] = update->iter_values[a];
    }
    const auto product = product_of(block, paddings_);
    if (!product) return std::nullopt;
    const BufferLoad& load = *product->padded;
    for (const auto& [dim, data] : paddings_.at(load.buffer.get()))
      if (auto steps = within(loop, *taps, substitute(load.indices[dim], values), data))
        return steps;
    return std::nullopt;
  }

 private:
  static std::optional<Steps> within(const For& loop, int64_t taps, const Expr& index,
                                     const Data& data) {
    arith::Analyzer analyzer;
    std::vector<Ref<Var>> vars{loop.loop_var};
    std::vector<int64_t> extents{taps};
    bool known = true;
    walk<For>(loop.body, [&](const For& inner) {
      vars.push_back(inner.loop_var);
      extents.push_back(as_int(inner.extent).value_or(0));
      known = known && extents.back() > 0 && is_zero(inner.min);
    });
    const auto form = known ? analyzer.linear(index, vars) : std::nullopt;
    if (!form) return std::nullopt;
    // Places that the loops inside reach from the first one on.
    int64_t reach = 0;
    std::vector<int64_t> apart;
    for (size_t i = 0; i < vars.size(); ++i) {
      const auto step = as_int(form->coefficients[i]);
      if (!step || *step < 0) return std::nullopt;
      apart.push_back(*step);
      if (i > 0) reach += *step * (extents[i] - 1);
    }
    if (apart[0] == 0 || !skips_enough(data, taps, apart[0])) return std::nullopt;
    const Expr& place = form->rest;
    const DType dtype = loop.loop_var->dtype;
    if (place->dtype != dtype) return std::nullopt;
    const auto number = [&](int64_t value) { return imm(dtype, value); };
    const Expr first =
        max(number(0), ceildiv(number(data.first - reach) - place, number(apart[0])));
    const Expr last =
        min(number(taps), floordiv(number(data.last - 1) - place, number(apart[0])) + number(1));
    return Steps{analyzer.simplify(first), analyzer.simplify(max(number(0), last - first))};
  }

  const Paddings& paddings_;
};

}  // namespace

std::vector<int64_t> factors_of_padding(const PrimFunc& definition) {
  const Paddings paddings = paddings_of(definition);
  std::set<int64_t> out;
  if (paddings.empty()) return {};
  walk<Block>(definition.body, [&](const Block& block) {
    const auto product = product_of(block, paddings);
    const Expr factor = product ? without_wide_casts(product->factor) : Expr();
    const auto* load = factor.as<BufferLoad>();
    if (!load || !load->buffer->dtype.is_float()) return;
    const auto param = std::ranges::find_if(
        definition.buffers, [&](const auto& buffer) { return buffer.same_as(load->buffer); });
    if (param == definition.buffers.end()) return;
    for (const auto& [dim, data] : paddings.at(product->padded->buffer.get()))
      if (often_misses(product->padded->indices[dim], block, data))
        out.insert(param - definition.buffers.begin());
  });
  return {out.begin(), out.end()};
}

Ref<PrimFunc> skip_padding(const Ref<PrimFunc>& scheduled, const PrimFunc& definition) {
  const Paddings paddings = with_finite_factors(paddings_of(definition), definition);
  if (paddings.empty()) return scheduled;
  const Skipper skipper(paddings);
  std::unordered_map<const Node*, Steps> found;  // by loop variable
  walk<For>(scheduled->body, [&](const For& loop) {
    if (auto steps = skipper.steps_of(loop)) found.emplace(loop.loop_var.get(), *steps);
  });
  if (found.empty()) return scheduled;
  return rewrite(scheduled, [&](const NodePtr& node) -> std::optional<NodePtr> {
    const auto* loop = node.as<For>();
    const auto it = loop ? found.find(loop->loop_var.get()) : found.end();
    if (it == found.end()) return std::nullopt;
    return NodePtr(loop->with(it->second.first, it->second.count, loop->body));
  });
}

}  // namespace tenon::tir
