// SPDX-License-Identifier: Apache-2.0
// Replaces chains of operators by the one operator that they spell out. The rules are patterns, as
// users write theirs (docs/patterns.md); the first in the table that applies is taken.

#include <algorithm>

#include "tenon/arith/analyzer.h"
#include "tenon/graph/ops/define.h"
#include "tenon/graph/patterns/rewriter.h"
#include "tenon/graph/transforms.h"
#include "tenon/graph/transforms/conv_taps.h"
#include "tenon/graph/transforms/match.h"
#include "tenon/support/remarks.h"

namespace tenon::graph {

namespace {

bool is_of_type(const Value& value, const Type& type) {
  return structural_equal(type_of(value), type);
}

/// x ** 1 = x, x ** 2 = x * x, x ** 3 = x * x * x, x ** 0.5 = sqrt(x).
Value power(const Value& x, const std::optional<double>& exponent) {
  if (exponent == 1) return x;
  if (exponent == 2) return call_op("multiply", {x, x});
  if (exponent == 3) return call_op("multiply", {call_op("multiply", {x, x}), x});
  return exponent == 0.5 ? call_op("sqrt", {x}) : Value();
}

/// The input axis of each axis of the result, none below 0.
std::vector<int64_t> axes_of(const Value& permutation) {
  const auto* call = permutation.as<Call>();
  const int64_t ndim = tensor_type(call->args[0])->ndim;
  std::vector<int64_t> reversed;
  for (int64_t axis = ndim; axis-- > 0;) reversed.push_back(axis);
  std::vector<int64_t> axes = call->attrs.ints("axes").value_or(reversed);
  for (int64_t& axis : axes) axis += axis < 0 ? ndim : 0;
  return axes;
}

/// Permutation `outer` of x or, where it is not null, of permutation `inner` of x.
Value permuted(const Value& x, const Value& inner, const Value& outer) {
  if (tensor_type(x)->ndim < 0) return {};
  std::vector<int64_t> axes = axes_of(outer);
  const std::vector<int64_t> first = inner ? axes_of(inner) : std::vector<int64_t>();
  for (int64_t& axis : axes) axis = inner ? first[static_cast<size_t>(axis)] : axis;
  if (std::is_sorted(axes.begin(), axes.end())) return x;
  return inner ? call_op("permute_dims", {x}, {{"axes", axes}}) : Value();
}

/// Reshape `outer` of x, or of reshape `inner` of x.
Value reshaped(const Value& x, const Value& inner, const Value& outer) {
  const Ref<TensorType> type = tensor_type(outer);
  if (!type->has_shape()) return {};
  if (is_of_type(x, type)) return x;
  return inner ? call_op("reshape", {x, make<ShapeExpr>(*type->shape)}) : Value();
}

std::optional<int64_t> only_number(const Call& call, size_t i) {
  const auto numbers = dims_arg(call, i);
  return numbers && numbers->size() == 1 ? as_int(numbers->front()) : std::nullopt;
}

/// The axis of `to` from which on it has the elements of axis `cut` of `from`, as several axes, and how
/// many of its own make one step there; other axes are the same but for those of one element.
struct SplitAxis {
  size_t axis;
  int64_t step;
};
std::optional<SplitAxis> split_axis(const std::vector<Expr>& from, size_t cut,
                                    const std::vector<Expr>& to) {
  size_t t = 0;
  const auto skips_ones = [&] {
    while (t < to.size() && is_int(to[t], 1)) ++t;
  };
  const auto is_next = [&](const Expr& dim) {
    if (is_int(dim, 1)) return true;
    skips_ones();
    if (t == to.size() || !structural_equal(dim, to[t])) return false;
    ++t;
    return true;
  };
  for (size_t a = 0; a < cut; ++a)
    if (!is_next(from[a])) return std::nullopt;
  skips_ones();
  const auto whole = as_int(from[cut]);
  SplitAxis split{t, 1};
  int64_t elements = 1;
  for (; whole && t < to.size() && elements < *whole; ++t) {
    const auto dim = as_int(to[t]);
    if (!dim || *dim < 1) return std::nullopt;
    elements *= *dim;
    if (t > split.axis) split.step *= *dim;
  }
  if (elements != whole || split.step == 1) return std::nullopt;
  for (size_t a = cut + 1; a < from.size(); ++a)
    if (!is_next(from[a])) return std::nullopt;
  skips_ones();
  return t == to.size() ? std::optional(split) : std::nullopt;
}

/// A reshape that splits the axis of a slice, such as one that makes heads of a third of channels, as a
/// slice of a reshape: what reads the slice may become one kernel with it.
Value slice_of_reshape(const Call& slice, const Value& reshape) {
  const Ref<TensorType> x = tensor_type(slice.args[0]), part = tensor_type(Value(&slice)),
                        result = tensor_type(reshape);
  if (!x->has_shape() || !part->has_shape() || !result->has_shape() || slice.args.size() > 5)
    return {};
  const auto given = only_number(slice, 1), begin = only_number(slice, 2);
  const auto strides = slice.args.size() == 5 ? only_number(slice, 4) : 1;
  if (!given || !begin || *begin < 0 || strides != 1) return {};
  const auto axis = static_cast<size_t>(*given < 0 ? *given + x->ndim : *given);
  const auto split = split_axis(*part->shape, axis, *result->shape);
  const auto all = as_int(x->dim(static_cast<int64_t>(axis)));
  if (!split || !all || *all % split->step != 0 || *begin % split->step != 0) return {};
  std::vector<Expr> shape = *result->shape;
  const int64_t first = *begin / split->step;
  const int64_t end = first + *as_int(shape[split->axis]);
  if (end > *all / split->step) return {};  // it does not lie inside, which the slice checks
  shape[split->axis] = int64(*all / split->step);
  const auto one = [](int64_t value) { return make<ShapeExpr>(std::vector<Expr>{int64(value)}); };
  return call_op("strided_slice",
                 {call_op("reshape", {slice.args[0], make<ShapeExpr>(std::move(shape))}),
                  one(static_cast<int64_t>(split->axis)), one(first), one(end)});
}

DFPattern mean_of_last_axis(const DFPattern& x) {
  return is_op("mean")(x).has_attr({{"axis", std::vector<int64_t>{-1}}, {"keepdims", true}});
}

/// Layer norm where gamma and beta are vectors along the last axis of x.
Value layer_norm(const Value& x, const Value& gamma, const Value& beta,
                 const std::optional<double>& epsilon) {
  const Ref<TensorType> type = tensor_type(x);
  const auto is_along_last = [&](const Value& value) {
    const Ref<TensorType> vector = tensor_type(value);
    return vector->ndim == 1 && vector->has_shape() && type->has_shape() &&
           structural_equal(vector->dim(0), type->dim(-1));
  };
  if (!epsilon || !is_along_last(gamma) || !is_along_last(beta)) return {};
  return call_op("nn.layer_norm", {x, gamma, beta},
                 {{"axes", std::vector<int64_t>{-1}}, {"epsilon", *epsilon}});
}

/// Heads that are repeated: x as (b, g, 1, t, d), broadcast to (b, g, m, t, d), as (b, g m, t, d).
struct Repeated {
  DFPattern x = wildcard();
  DFPattern one = is_op("reshape")(x, wildcard());
  DFPattern wide = is_op("broadcast_to")(one, wildcard());
  DFPattern heads = is_op("reshape")(wide, wildcard());
};

/// Product of `a` (b, g m, s, k) with repeated heads, (b, g m, t, d), or with their transposes: rows
/// of the members of a group stand below one another, so that nothing is repeated.
Value grouped_product(const Value& a, const Repeated& repeated, bool transposed, const Match& m,
                      const Value& product) {
  const Ref<TensorType> x = tensor_type(m[repeated.one]), wide = tensor_type(m[repeated.wide]),
                        heads = tensor_type(m[repeated.heads]), rows = tensor_type(a),
                        result = tensor_type(product);
  for (const auto& [type, ndim] : {std::pair(x, 5), {wide, 5}, {heads, 4}, {rows, 4}, {result, 4}})
    if (!type->has_shape() || type->ndim != ndim) return {};
  const auto is_same = [](const Expr& p, const Expr& q) { return structural_equal(p, q); };
  const auto groups = as_int(x->dim(1)), members = as_int(wide->dim(2));
  if (!groups || !members || !is_int(x->dim(2), 1) || !is_int(heads->dim(1), *groups * *members) ||
      !is_int(rows->dim(1), *groups * *members) || !is_same(rows->dim(0), x->dim(0)))
    return {};
  for (const int64_t axis : {0, 1, 3, 4})
    if (!is_same(x->dim(axis), wide->dim(axis))) return {};
  for (const auto& [axis, of_x] : {std::pair(0, 0), {2, 3}, {3, 4}})
    if (!is_same(heads->dim(axis), x->dim(of_x))) return {};
  const auto as = [](const Value& value, std::vector<Expr> shape) -> Value {
    if (is_of_type(value, make<TensorType>(shape, tensor_type(value)->dtype))) return value;
    return call_op("reshape", {value, make<ShapeExpr>(std::move(shape))});
  };
  const Value left =
      as(a, {rows->dim(0), x->dim(1), arith::simplify(rows->dim(2) * *members), rows->dim(3)});
  const Value right = as(m[repeated.x], {x->dim(0), x->dim(1), x->dim(3), x->dim(4)});
  const Value y = transposed ? call_op("einsum", {make<Tuple>(std::vector<Value>{left, right})},
                                       {{"subscripts", "bhsd,bhtd->bhst"}})
                             : call_op("matmul", {left, right}, product.as<Call>()->attrs);
  return call_op("reshape", {y, make<ShapeExpr>(*result->shape)});
}

PatternRewriter rule(const char* name, const DFPattern& pattern, CallRule replacement) {
  return PatternRewriter::from_pattern(pattern, std::move(replacement)).named(name);
}

PatternRewriter simplifications() {
  const DFPattern x = wildcard(), gamma = wildcard(), beta = wildcard(), number = is_const();
  const DFPattern permutation = is_op("permute_dims")(x), reshape = is_op("reshape")(x, wildcard());
  const DFPattern slice = is_op("strided_slice").call_with_any();
  // Two patterns, which may match one value: the mean may be taken off once or twice.
  const auto centred = [&] { return is_op("subtract")(x, mean_of_last_axis(x)); };
  const DFPattern difference = centred();
  const DFPattern variance = mean_of_last_axis(is_op("multiply")(difference, difference));
  const DFPattern deviation = is_op("sqrt")(is_op("add")(number, variance));
  const DFPattern normalized = is_op("divide")(centred(), deviation);

  const Repeated values, keys;
  const DFPattern query = wildcard(), weights = wildcard();
  const DFPattern transposed_keys =
      is_op("permute_dims")(keys.heads).has_attr({{"axes", std::vector<int64_t>{0, 1, 3, 2}}});

  return rule("trivial", is_op("astype")(x),
              [=](const Value& cast, const Match& m) {
                return is_of_type(m[x], type_of(cast)) ? m[x] : Value();
              }) |
         rule("trivial", is_op("permute_dims")(permutation | x),
              [=](const Value& outer, const Match& m) {
                return permuted(m[x], m.expr(permutation), outer);
              }) |
         rule("trivial", is_op("reshape")(reshape | x, wildcard()),
              [=](const Value& outer, const Match& m) {
                return reshaped(m[x], m[reshape], outer);
              }) |
         rule("slice-of-reshape", is_op("reshape")(slice, wildcard()),
              [=](const Value& outer, const Match& m) {
                return slice_of_reshape(*m.expr(slice).as<Call>(), outer);
              }) |
         rule("power", is_op("power")(x, number),
              [=](const Value& call, const Match& m) {
                // A constant of higher rank makes the result another shape.
                return is_of_type(m[x], type_of(call)) ? power(m[x], constant_number(m[number]))
                                                       : Value();
              }) |
         rule("layer-norm", is_op("add")(beta, is_op("multiply")(gamma, normalized)),
              [=](const Value&, const Match& m) {
                return layer_norm(m[x], m[gamma], m[beta], constant_number(m[number]));
              }) |
         rule("padding-taps",
              any_of({is_op("nn.conv1d"), is_op("nn.conv2d"), is_op("nn.conv3d")})(x, weights),
              [](const Value& conv, const Match&) {
                return without_padding_taps(*conv.as<Call>());
              }) |
         rule("silu", is_op("multiply")(is_op("sigmoid")(x), x),
              [=](const Value&, const Match& m) { return call_op("nn.silu", {m[x]}); }) |
         rule("grouped-heads", is_op("matmul")(weights, values.heads),
              [=](const Value& product, const Match& m) {
                return grouped_product(m[weights], values, false, m, product);
              }) |
         rule("grouped-heads", is_op("matmul")(query, transposed_keys),
              [=](const Value& product, const Match& m) {
                // The sums of einsum are of its operands' dtype, those of matmul may be wider.
                const DType dtype = tensor_type(product)->dtype;
                return dtype == tensor_type(m[query])->dtype && dtype.bits >= 32
                           ? grouped_product(m[query], keys, true, m, product)
                           : Value();
              });
}

}  // namespace

IRModule simplify_graph(IRModule module) {
  static const PatternRewriter kRules = simplifications();
  Matcher matcher(nullptr);
  return rebuild_all(
      std::move(module), [&](BlockBuilder& builder, const Binding& binding, const Value& value) {
        const std::string& name = binding.var->name;
        const auto rewrite = kRules.at(matcher, value);
        if (rewrite)
          record({"SimplifyGraph", name, "rewritten", rewrite->name, {}, "", binding.origin});
        return emit_noted(builder, matcher, rewrite ? rewrite->value : value, name);
      });
}

}  // namespace tenon::graph
