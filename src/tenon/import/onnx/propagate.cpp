// SPDX-License-Identifier: Apache-2.0
// Computes shapes that networks compute, on elements instead of tensors.
#include <cmath>
#include <functional>
#include <map>

#include "tenon/arith/analyzer.h"
#include "tenon/import/onnx/context.h"

namespace tenon::onnx {

namespace {

using Results = std::optional<std::vector<Elements>>;
using Rule = std::function<Results(Context&)>;
using Index = std::vector<int64_t>;

constexpr int kMostTerms = 1000;  // of an element

int64_t count(const std::vector<int64_t>& shape) { return checked_elements(shape); }

Expr tidy(const Expr& value) { return arith::simplify(value); }

// Whether `value`, written out, has more than `left` terms: products of a value with itself share
// them, and text does not.
bool is_long(const Expr& value, int& left) {
  if (--left < 0) return true;
  bool found = false;
  each_member(value, [&](const NodePtr& member, FieldRole) {
    found = found || (member.as<ExprNode>() && is_long(downcast<ExprNode>(member), left));
  });
  return found;
}

// The elements of a result, each from its index; nothing where it would be large.
Results build(DType dtype, const std::vector<int64_t>& shape,
              const std::function<Expr(const Index&)>& element) {
  const int64_t total = count(shape);
  if (total > kMostElements) return std::nullopt;
  Elements out{dtype, shape, {}};
  Index index(shape.size(), 0);
  for (int64_t i = 0; i < total; ++i) {
    Expr value = element(index);
    int left = kMostTerms;
    if (!value || is_long(value, left)) return std::nullopt;
    out.values.push_back(std::move(value));
    for (size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
  return std::vector<Elements>{std::move(out)};
}

const Expr& at(const Elements& x, const Index& index) {
  int64_t offset = 0;
  for (size_t d = 0; d < index.size(); ++d) offset = offset * x.shape[d] + index[d];
  return x.values[static_cast<size_t>(offset)];
}

// NumPy's broadcasting of known shapes; nothing where they do not meet.
std::optional<std::vector<int64_t>> broadcast(const std::vector<const Elements*>& operands) {
  std::vector<int64_t> shape;
  for (const Elements* x : operands) {
    if (x->shape.size() > shape.size())
      shape.insert(shape.begin(), x->shape.size() - shape.size(), 1);
    for (size_t i = 0; i < x->shape.size(); ++i) {
      int64_t& dim = shape[shape.size() - x->shape.size() + i];
      if (x->shape[i] == 1 || x->shape[i] == dim) continue;
      if (dim != 1) return std::nullopt;
      dim = x->shape[i];
    }
  }
  return shape;
}
const Expr& broadcast_at(const Elements& x, const Index& index) {
  Index own(x.shape.size());
  for (size_t i = 0; i < own.size(); ++i)
    own[i] = x.shape[i] == 1 ? 0 : index[index.size() - own.size() + i];
  return at(x, own);
}

Rule elementwise(size_t operands, const std::function<Expr(const std::vector<Expr>&)>& element,
                 bool gives_bool = false, size_t dtype_of = 0) {
  return [=](Context& c) -> Results {
    if (c.has_attr("axis") || c.has_attr("broadcast")) return std::nullopt;
    std::vector<const Elements*> x;
    const size_t n = operands == 0 ? c.input_count() : operands;
    for (size_t i = 0; i < n; ++i) x.push_back(c.elements(i));
    const auto shape = broadcast(x);
    if (!shape || n == 0) return std::nullopt;
    const DType dtype = gives_bool ? kBool : x[dtype_of]->dtype;
    return build(dtype, *shape, [&](const Index& index) -> Expr {
      std::vector<Expr> values;
      for (const Elements* e : x) values.push_back(broadcast_at(*e, index));
      for (size_t i = dtype_of + 1; i < values.size(); ++i)
        if (values[i]->dtype != values[dtype_of]->dtype) return nullptr;
      Expr value = element(values);
      if (!value) return nullptr;
      value = tidy(value);
      if (const auto n = as_int(value); n && dtype == kInt32 && *n != static_cast<int32_t>(*n))
        return nullptr;
      // Of floats only numbers are kept.
      if (dtype.is_float() && !as_float(value)) return nullptr;
      return value;
    });
  };
}
Rule binary_rule(BinaryOp op) {
  return elementwise(
      2,
      [op](const std::vector<Expr>& v) -> Expr {
        const bool divides = op == BinaryOp::kDiv || op == BinaryOp::kMod;
        if (!v[0]->dtype.is_float() && divides) {
          if (is_int(v[1], 0)) return nullptr;
          // Of sizes towards zero is towards minus infinity, which is simplified better.
          if (arith::Analyzer().proves_nonnegative(v[0]) && arith::Analyzer().proves_positive(v[1]))
            return op == BinaryOp::kDiv ? floordiv(v[0], v[1]) : floormod(v[0], v[1]);
        }
        if (op == BinaryOp::kMod && v[0]->dtype.is_float()) return nullptr;
        return binary(op, v[0], v[1]);
      },
      is_comparison(op));
}

Rule folded(BinaryOp op) {
  return elementwise(0, [op](const std::vector<Expr>& v) {
    Expr result = v[0];
    for (size_t i = 1; i < v.size(); ++i) result = binary(op, result, v[i]);
    return result;
  });
}
Rule rounding(double (*f)(double)) {
  return elementwise(1, [f](const std::vector<Expr>& v) -> Expr {
    const auto number = as_float(v[0]);
    return v[0]->dtype.is_float() && number ? imm(v[0]->dtype, f(*number)) : Expr();
  });
}

Results with_shape(Context& c, const std::vector<int64_t>& shape) {
  const Elements* x = c.elements(0);
  if (count(shape) != static_cast<int64_t>(x->values.size())) return std::nullopt;
  return std::vector<Elements>{Elements{x->dtype, shape, x->values}};
}

// Axes as an attribute (old form) or as an input.
std::optional<std::vector<int64_t>> axes_operand(Context& c, size_t input) {
  if (c.has_attr("axes")) return c.ints_attr("axes");
  if (!c.has(input)) return std::nullopt;
  return c.elements(input)->constants();
}

Results shape_rule(Context& c) {
  const Dims dims = c.shape(0);
  const auto n = static_cast<int64_t>(dims.size());
  const auto clamp = [&](int64_t at) {
    return std::min(std::max<int64_t>(at < 0 ? at + n : at, 0), n);
  };
  const int64_t start = clamp(c.int_attr("start", 0)), end = clamp(c.int_attr("end", n));
  return build(kInt64, {std::max<int64_t>(end - start, 0)},
               [&](const Index& i) { return dims[static_cast<size_t>(start + i[0])]; });
}

Results size_rule(Context& c) {
  const Expr total = product(c.shape(0));
  return build(kInt64, {}, [&](const Index&) { return total; });
}

Results gather_rule(Context& c) {
  const Elements *x = c.elements(0), *indices = c.elements(1);
  const int64_t axis = c.axis(c.int_attr("axis", 0), x->ndim());
  const auto picks = indices->constants();
  if (!picks) return std::nullopt;
  std::vector<int64_t> shape(x->shape.begin(), x->shape.begin() + axis);
  shape.insert(shape.end(), indices->shape.begin(), indices->shape.end());
  shape.insert(shape.end(), x->shape.begin() + axis + 1, x->shape.end());
  const int64_t extent = x->shape[static_cast<size_t>(axis)];
  for (const int64_t p : *picks)
    if (p < -extent || p >= extent)
      c.bad(kOutOfBounds, "index {} into an axis of {} elements", p, extent);
  return build(x->dtype, shape, [&](const Index& i) {
    const Index pick(i.begin() + axis, i.begin() + axis + indices->ndim());
    int64_t p = *as_int(at(*indices, pick));
    Index from(i.begin(), i.begin() + axis);
    from.push_back(p < 0 ? p + extent : p);
    from.insert(from.end(), i.begin() + axis + indices->ndim(), i.end());
    return at(*x, from);
  });
}

Results concat_rule(Context& c) {
  const Elements* first = c.elements(0);
  if (first->ndim() == 0) return std::nullopt;
  const auto axis = static_cast<size_t>(c.axis(c.int_attr("axis", 1), first->ndim()));
  std::vector<int64_t> shape = first->shape;
  shape[axis] = 0;
  for (size_t i = 0; i < c.input_count(); ++i) {
    const Elements* x = c.elements(i);
    if (x->ndim() != first->ndim() || x->dtype != first->dtype) return std::nullopt;
    for (size_t d = 0; d < shape.size(); ++d)
      if (d != axis && x->shape[d] != shape[d]) return std::nullopt;
    shape[axis] += x->shape[axis];
  }
  return build(first->dtype, shape, [&](const Index& i) {
    Index from = i;
    size_t operand = 0;
    while (from[axis] >= c.elements(operand)->shape[axis])
      from[axis] -= c.elements(operand++)->shape[axis];
    return at(*c.elements(operand), from);
  });
}

Results slice_rule(Context& c) {
  const Elements* x = c.elements(0);
  std::optional<std::vector<int64_t>> starts, ends, axes, steps;
  if (c.has_attr("starts")) {
    starts = c.ints_attr("starts");
    ends = c.ints_attr("ends");
    if (c.has_attr("axes")) axes = c.ints_attr("axes");
  } else {
    starts = c.elements(1)->constants();
    ends = c.elements(2)->constants();
    if (c.has(3) && !(axes = c.elements(3)->constants())) return std::nullopt;
    if (c.has(4) && !(steps = c.elements(4)->constants())) return std::nullopt;
  }
  if (!starts || !ends || starts->size() != ends->size()) return std::nullopt;
  std::vector<int64_t> shape = x->shape, from(shape.size(), 0), by(shape.size(), 1);
  for (size_t k = 0; k < starts->size(); ++k) {
    if ((axes && k >= axes->size()) || (steps && k >= steps->size())) return std::nullopt;
    const auto d =
        static_cast<size_t>(c.axis(axes ? (*axes)[k] : static_cast<int64_t>(k), x->ndim()));
    const int64_t step = steps ? (*steps)[k] : 1, n = x->shape[d];
    if (step == 0) return std::nullopt;
    const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
    const auto clamp = [&](int64_t v) {
      return std::clamp(v < 0 ? v + n : v, low, std::max(low, high));
    };
    const int64_t start = clamp((*starts)[k]), end = clamp((*ends)[k]);
    const int64_t span = step > 0 ? end - start : start - end;
    const int64_t stride = step > 0 ? step : -(step + 1);  // of -2^63 too
    const int64_t gap = step > 0 ? stride : stride + (stride < INT64_MAX);
    shape[d] = span <= 0 ? 0 : (span - 1) / gap + 1;
    from[d] = start;
    by[d] = step;
  }
  return build(x->dtype, shape, [&](const Index& i) {
    Index source = i;
    for (size_t d = 0; d < i.size(); ++d) source[d] = from[d] + (i[d] ? i[d] * by[d] : 0);
    return at(*x, source);
  });
}

Results unsqueeze_rule(Context& c) {
  const auto given = axes_operand(c, 1);
  if (!given) return std::nullopt;
  const Elements* x = c.elements(0);
  const int64_t ndim = x->ndim() + static_cast<int64_t>(given->size());
  const auto axes = c.axes(*given, ndim);
  std::vector<int64_t> shape = x->shape;
  std::vector<int64_t> sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  for (const int64_t a : sorted) shape.insert(shape.begin() + a, 1);
  return with_shape(c, shape);
}

Results squeeze_rule(Context& c) {
  const Elements* x = c.elements(0);
  std::set<int64_t> drop;
  if (c.has_attr("axes") || c.has(1)) {
    const auto given = axes_operand(c, 1);
    if (!given) return std::nullopt;
    for (const int64_t a : c.axes(*given, x->ndim())) drop.insert(a);
  } else {
    for (int64_t d = 0; d < x->ndim(); ++d)
      if (x->shape[static_cast<size_t>(d)] == 1) drop.insert(d);
  }
  std::vector<int64_t> shape;
  for (int64_t d = 0; d < x->ndim(); ++d)
    if (!drop.count(d)) shape.push_back(x->shape[static_cast<size_t>(d)]);
  return with_shape(c, shape);
}

Results reshape_rule(Context& c) {
  const Elements* x = c.elements(0);
  auto dims =
      c.has_attr("shape") ? std::optional(c.ints_attr("shape")) : c.elements(1)->constants();
  if (!dims) return std::nullopt;
  const bool zero_is_zero = c.flag_attr("allowzero");
  int64_t known = 1;
  for (size_t d = 0; d < dims->size(); ++d) {
    if ((*dims)[d] == 0 && !zero_is_zero) {
      if (d >= x->shape.size()) return std::nullopt;
      (*dims)[d] = x->shape[d];
    }
    if ((*dims)[d] != -1 && __builtin_mul_overflow(known, (*dims)[d], &known)) return std::nullopt;
  }
  for (int64_t& dim : *dims) {
    if (dim == -1 && known > 0) dim = static_cast<int64_t>(x->values.size()) / known;
    if (dim < 0) return std::nullopt;
  }
  return with_shape(c, *dims);
}

Results transpose_rule(Context& c) {
  const Elements* x = c.elements(0);
  std::vector<int64_t> perm(x->shape.size());
  for (size_t d = 0; d < perm.size(); ++d) perm[d] = static_cast<int64_t>(perm.size() - 1 - d);
  perm = c.axes(c.ints_attr("perm", perm), x->ndim());
  if (perm.size() != x->shape.size()) return std::nullopt;
  std::vector<int64_t> shape;
  for (const int64_t p : perm) shape.push_back(x->shape[static_cast<size_t>(p)]);
  return build(x->dtype, shape, [&](const Index& i) {
    Index from(i.size());
    for (size_t d = 0; d < i.size(); ++d) from[static_cast<size_t>(perm[d])] = i[d];
    return at(*x, from);
  });
}

Results expand_rule(Context& c) {
  const auto dims = c.elements(1)->constants();
  if (!dims) return std::nullopt;
  for (const int64_t d : *dims)
    if (d < 0) return std::nullopt;
  const Elements target{kInt64, *dims, {}};
  const Elements* x = c.elements(0);
  const auto shape = broadcast({x, &target});
  if (!shape) return std::nullopt;
  return build(x->dtype, *shape, [&](const Index& i) { return broadcast_at(*x, i); });
}

Results split_rule(Context& c) {
  const Elements* x = c.elements(0);
  if (x->ndim() == 0) return std::nullopt;
  const auto axis = static_cast<size_t>(c.axis(c.int_attr("axis", 0), x->ndim()));
  std::vector<int64_t> parts;
  if (c.has_attr("split")) {
    parts = c.ints_attr("split");
  } else if (c.has(1)) {
    const auto given = c.elements(1)->constants();
    if (!given) return std::nullopt;
    parts = *given;
  } else {
    const auto n = static_cast<int64_t>(c.output_count());
    const int64_t size = (x->shape[axis] + n - 1) / std::max<int64_t>(n, 1);
    for (int64_t at = 0; at < n; ++at)
      parts.push_back(std::clamp<int64_t>(x->shape[axis] - at * size, 0, size));
  }
  int64_t total = 0;
  for (const int64_t p : parts)
    if (p < 0 || __builtin_add_overflow(total, p, &total)) return std::nullopt;
  if (total != x->shape[axis]) return std::nullopt;
  std::vector<Elements> out;
  int64_t begin = 0;
  for (const int64_t p : parts) {
    std::vector<int64_t> shape = x->shape;
    shape[axis] = p;
    out.push_back((*build(x->dtype, shape, [&](const Index& i) {
      Index from = i;
      from[axis] += begin;
      return at(*x, from);
    }))[0]);
    begin += p;
  }
  return out;
}

Results range_rule(Context& c) {
  for (size_t i = 0; i < 3; ++i)
    if (c.elements(i)->values.size() != 1) return std::nullopt;
  const auto start = as_int(c.elements(0)->values.at(0)),
             limit = as_int(c.elements(1)->values.at(0)),
             step = as_int(c.elements(2)->values.at(0));
  if (!c.dtype(0).is_integer() || !start || !limit || !step || *step == 0) return std::nullopt;
  std::vector<Expr> values;
  for (int64_t v = *start; *step > 0 ? v < *limit : v > *limit;) {
    if (static_cast<int64_t>(values.size()) == kMostElements) return std::nullopt;
    values.push_back(int64(v));
    if (__builtin_add_overflow(v, *step, &v)) break;
  }
  const auto n = static_cast<int64_t>(values.size());
  return std::vector<Elements>{Elements{c.dtype(0), {n}, std::move(values)}};
}

Results cast_rule(Context& c) {
  const auto to = dtype_of(c.int_attr("to"));
  const Elements* x = c.elements(0);
  if (!to) return std::nullopt;
  const bool holds =
      to->is_bool() || *to == kInt64 || *to == kInt32 || *to == kFloat32 || *to == kFloat64;
  if (!holds) return std::nullopt;
  return build(*to, x->shape, [&](const Index& i) -> Expr {
    const Expr value = at(*x, i);
    if (to->is_bool()) {
      if (value->dtype.is_bool()) return value;
      return value->dtype.is_float() ? boolean(*as_float(value) != 0) : tidy(ne(value, int64(0)));
    }
    if (to->is_integer()) {
      if (value->dtype.is_float()) {
        const double number = *as_float(value);
        if (!(std::fabs(number) < 9.0e18)) return nullptr;
        const auto whole = static_cast<int64_t>(number);
        if (*to == kInt32 && whole != static_cast<int32_t>(whole)) return nullptr;
        return int64(whole);
      }
      if (value->dtype.is_bool()) return tidy(tenon::cast(kInt64, value));
      // Sizes are assumed to fit.
      if (*to == kInt32)
        if (const auto n = as_int(value); n && *n != static_cast<int32_t>(*n)) return nullptr;
      return value;
    }
    const auto number = as_float(value->dtype.is_float() ? value : tenon::cast(*to, value));
    return number ? imm(*to, *number) : Expr();
  });
}

Results constant_of_shape_rule(Context& c) {
  const auto dims = c.elements(0)->constants();
  if (!dims || c.ndim(0) != 1) return std::nullopt;
  for (const int64_t d : *dims)
    if (d < 0) return std::nullopt;
  Elements value{kFloat32, {1}, {imm(kFloat32, 0.0)}};
  if (c.has_attr("value")) {
    const auto given = elements_of(*c.tensor_attr("value").data);
    if (!given || given->values.size() != 1) return std::nullopt;
    value = *given;
  }
  if (!value.dtype.is_integer()) return std::nullopt;  // data, not a shape
  return build(value.dtype, *dims, [&](const Index&) { return value.values[0]; });
}

Results where_rule(Context& c) {
  const std::vector<const Elements*> x = {c.elements(0), c.elements(1), c.elements(2)};
  const auto shape = broadcast(x);
  if (!shape || !x[0]->dtype.is_bool() || x[1]->dtype != x[2]->dtype) return std::nullopt;
  return build(x[1]->dtype, *shape, [&](const Index& i) -> Expr {
    const Expr condition = broadcast_at(*x[0], i);
    if (const auto known = as_int(condition)) return broadcast_at(*x[*known ? 1 : 2], i);
    if (x[1]->dtype.is_float()) return nullptr;
    return tidy(select(condition, broadcast_at(*x[1], i), broadcast_at(*x[2], i)));
  });
}

// Of a whole vector, the form that shapes use.
Rule reduce_rule(BinaryOp op, int64_t neutral) {
  return [=](Context& c) -> Results {
    const Elements* x = c.elements(0);
    if (x->ndim() != 1 || !x->dtype.is_integer()) return std::nullopt;
    if (c.has_attr("axes") || c.has(1)) {
      const auto axes = axes_operand(c, 1);
      if (!axes) return std::nullopt;
      if (axes->empty() && c.flag_attr("noop_with_empty_axes")) return std::nullopt;
    } else if (c.flag_attr("noop_with_empty_axes")) {
      return std::nullopt;
    }
    if (x->values.empty() && op != BinaryOp::kAdd && op != BinaryOp::kMul) return std::nullopt;
    Expr result = x->values.empty() ? int64(neutral) : x->values[0];
    for (size_t i = 1; i < x->values.size(); ++i) result = binary(op, result, x->values[i]);
    result = tidy(result);
    const std::vector<int64_t> shape(c.flag_attr("keepdims", true) ? 1 : 0, 1);
    return build(x->dtype, shape, [&](const Index&) { return result; });
  };
}

Results identity_rule(Context& c) { return std::vector<Elements>{*c.elements(0)}; }

const std::map<std::string, Rule>& rules() {
  static const std::map<std::string, Rule> kRules = {
      {"Abs", elementwise(1,
                          [](const std::vector<Expr>& v) -> Expr {
                            if (v[0]->dtype.is_float()) return nullptr;
                            return max(v[0], int64(0) - v[0]);
                          })},
      {"Add", binary_rule(BinaryOp::kAdd)},
      {"And", binary_rule(BinaryOp::kAnd)},
      {"Cast", cast_rule},
      {"Ceil", rounding([](double x) { return std::ceil(x); })},
      {"Concat", concat_rule},
      {"ConstantOfShape", constant_of_shape_rule},
      {"Div", binary_rule(BinaryOp::kDiv)},
      {"Equal", binary_rule(BinaryOp::kEQ)},
      {"Expand", expand_rule},
      {"Floor", rounding([](double x) { return std::floor(x); })},
      {"Gather", gather_rule},
      {"Greater", binary_rule(BinaryOp::kGT)},
      {"GreaterOrEqual", binary_rule(BinaryOp::kGE)},
      {"Identity", identity_rule},
      {"Less", binary_rule(BinaryOp::kLT)},
      {"LessOrEqual", binary_rule(BinaryOp::kLE)},
      {"Max", folded(BinaryOp::kMax)},
      {"Min", folded(BinaryOp::kMin)},
      {"Mul", binary_rule(BinaryOp::kMul)},
      {"Neg", elementwise(1,
                          [](const std::vector<Expr>& v) -> Expr {
                            if (v[0]->dtype.is_float()) return nullptr;
                            return int64(0) - v[0];
                          })},
      {"Not", elementwise(1, [](const std::vector<Expr>& v) { return logical_not(v[0]); })},
      {"Or", binary_rule(BinaryOp::kOr)},
      {"Range", range_rule},
      {"ReduceMax", reduce_rule(BinaryOp::kMax, 0)},
      {"ReduceMin", reduce_rule(BinaryOp::kMin, 0)},
      {"ReduceProd", reduce_rule(BinaryOp::kMul, 1)},
      {"ReduceSum", reduce_rule(BinaryOp::kAdd, 0)},
      {"Reshape", reshape_rule},
      {"Shape", shape_rule},
      {"Size", size_rule},
      {"Slice", slice_rule},
      {"Split", split_rule},
      {"Squeeze", squeeze_rule},
      {"Sub", binary_rule(BinaryOp::kSub)},
      {"Transpose", transpose_rule},
      {"Unsqueeze", unsqueeze_rule},
      {"Where", where_rule},
  };
  return kRules;
}

}  // namespace

Results propagate(Context& context) {
  const Node& node = context.node();
  const auto rule = rules().find(node.op_type);
  if (!node.domain.empty() || rule == rules().end()) return std::nullopt;
  const bool reads_shape_only = node.op_type == "Shape" || node.op_type == "Size";
  if (context.input_count() == 0 || !context.has(0)) return std::nullopt;
  for (size_t i = 0; i < context.input_count() && !reads_shape_only; ++i)
    if (context.has(i) && !context.elements(i)) return std::nullopt;
  // Operands that the rules take for granted.
  static const std::map<std::string, size_t> kLeast = {
      {"Expand", 2}, {"Gather", 2}, {"Range", 3}, {"Where", 3}};
  const auto least = kLeast.find(node.op_type);
  for (size_t i = 0; least != kLeast.end() && i < least->second; ++i)
    if (!context.has(i)) return std::nullopt;
  if (node.op_type == "Slice" && !context.has_attr("starts") &&
      (!context.has(1) || !context.has(2)))
    return std::nullopt;
  if (node.op_type == "Reshape" && !context.has_attr("shape") && !context.has(1))
    return std::nullopt;
  return rule->second(context);
}

}  // namespace tenon::onnx
