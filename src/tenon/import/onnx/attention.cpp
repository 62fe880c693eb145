// SPDX-License-Identifier: Apache-2.0
#include "tenon/import/onnx/attention.h"

#include <cmath>
#include <limits>

#include "tenon/arith/analyzer.h"

namespace tenon::onnx {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool is_narrow(DType dtype) { return dtype.is_float() && dtype.bits < 32; }

// Sums of narrow floats are kept in float32.
Value product(Context& c, const Value& a, const Value& b) {
  const DType dtype = shaped(a)->dtype;
  return c.op("matmul", {a, b}, {{"out_dtype", is_narrow(dtype) ? kFloat32 : kVoid}});
}

// query key^T, for rows of keys that are not transposed before: the kernel reads each key once. The
// sums of narrow floats stay in float32, which only a product of matrices states.
Value scores_of(Context& c, const Value& query, const Value& key) {
  if (is_narrow(shaped(query)->dtype)) return product(c, query, c.transpose(key, {0, 1, 3, 2}));
  return c.op("einsum", {make<graph::Tuple>(std::vector<Value>{query, key})},
              {{"subscripts", "bhsd,bhtd->bhst"}});
}

Value scaled(Context& c, const Value& x, double factor) {
  return factor == 1 ? x : c.op("multiply", {x, c.scalar(shaped(x)->dtype, factor)});
}

// Heads that share keys stand below one another, as rows of one product.
class Groups {
 public:
  Groups(Context& c, const AttentionForm& form)
      : c_(c), query_(*shaped(form.query)->shape), groups_((*shaped(form.key)->shape)[1]) {
    is_plain_ = arith::proves_equal(query_[1], groups_);
    if (is_plain_) return;
    const Expr divisor = max(groups_, int64(1));
    c.require(logical_and(groups_ >= int64(1), eq(floormod(query_[1], divisor), int64(0))),
              kShapeMismatch,
              fmt::format("`{}` has {} heads of queries and {} of keys; expected a multiple",
                          c.node().op_type, str(query_[1]), str(groups_)));
    members_ = arith::simplify(floordiv(query_[1], divisor));
  }
  /// (batch, heads, rows, x) as (batch, groups, members * rows, x).
  Value gather(const Value& x) const {
    if (is_plain_) return x;
    const Dims shape = *shaped(x)->shape;
    return c_.reshape(of_groups(x), {shape[0], groups_, rows(), shape[3]});
  }
  Value spread(const Value& x) const {
    if (is_plain_) return x;
    const Value all = c_.reshape(x, {query_[0], heads(), query_[2], shaped(x)->dim(3)});
    return c_.fitted(all, {Expr(), query_[1], Expr(), Expr()}, "the result");
  }
  /// What is broadcast to (batch, heads, rows, columns), for scores that are gathered.
  Value mask(const Value& x) const {
    if (is_plain_ || !x) return x;
    Dims shape = *shaped(x)->shape;
    while (shape.size() < 4) shape.insert(shape.begin(), int64(1));
    const bool one_head = is_int(shape[1], 1), one_row = is_int(shape[2], 1);
    if (one_head && one_row) return c_.reshape(x, shape);
    const Expr groups = one_head ? int64(1) : groups_, members = one_head ? int64(1) : members_;
    const Value split =
        c_.reshape(one_head ? c_.reshape(x, shape) : of_groups(c_.reshape(x, shape)),
                   {shape[0], groups, members, shape[2], shape[3]});
    const Value all = c_.op(
        "broadcast_to", {split, c_.shape_value({shape[0], groups, members_, query_[2], shape[3]})});
    return c_.reshape(all, {shape[0], groups, rows(), shape[3]});
  }

 private:
  Expr rows() const { return arith::simplify(query_[2] * members_); }
  Expr heads() const { return arith::simplify(groups_ * members_); }
  // With a number of heads that is seen to be a multiple.
  Value of_groups(const Value& x) const {
    return c_.fitted(x, {Expr(), heads(), Expr(), Expr()}, "an operand");
  }

  Context& c_;
  Dims query_;
  Expr groups_, members_;
  bool is_plain_;
};

// The bias with -inf where it is not allowed; null where there is neither.
Value mask_of(Context& c, const AttentionForm& form, DType dtype) {
  const Value bias = form.bias ? c.cast(form.bias, dtype) : nullptr;
  if (!form.allowed) return bias;
  const Value kept = bias ? bias : c.scalar(dtype, 0);
  return c.op("where", {form.allowed, kept, c.scalar(dtype, -kInfinity)});
}

// The weights of the columns, without the sink's.
Value softmax(Context& c, const Value& x, const Value& sink) {
  if (!sink) return c.op("nn.softmax", {x}, {{"axis", -1}});
  const Ref<graph::TensorType> type = shaped(x);
  Dims shape = *type->shape;
  const Expr columns = shape[3];
  shape[3] = int64(1);
  const Value column = c.op("broadcast_to", {c.cast(sink, type->dtype), c.shape_value(shape)});
  const Value all =
      c.op("concat", {make<graph::Tuple>(std::vector<Value>{x, column})}, {{"axis", 3}});
  return c.op("strided_slice",
              {c.op("nn.softmax", {all}, {{"axis", -1}}), c.shape_value({int64(3)}),
               c.shape_value({int64(0)}), c.shape_value({columns})},
              {{"assume_inbound", true}});
}

Value scaled_scores(Context& c, const AttentionForm& form, const Value& scores) {
  if (form.scale) return scaled(c, scores, *form.scale);
  const Expr depth = shaped(form.query)->dim(3);
  if (const auto known = as_int(depth))
    return scaled(c, scores, 1 / std::sqrt(static_cast<double>(*known)));
  return c.op("multiply", {scores, c.cast(inverse_root(c, depth), shaped(scores)->dtype)});
}

}  // namespace

Value fitted_mask(Context& c, const AttentionForm& form, const Value& x) {
  if (!x) return x;
  const Dims q = *shaped(form.query)->shape;
  const Dims scores = {q[0], q[1], q[2], shaped(form.key)->dim(2)};
  const Ref<graph::TensorType> type = shaped(x);
  Dims dims = *type->shape;
  if (dims.size() > 4)
    c.bad(kRankMismatch, "a mask of `{}` has rank {}; expected at most 4", c.node().op_type,
          dims.size());
  bool fits = true;
  for (size_t d = 0; d < dims.size(); ++d) {
    const Expr& wanted = scores[scores.size() - dims.size() + d];
    if (is_int(dims[d], 1) || arith::proves_equal(dims[d], wanted)) continue;
    if (as_int(dims[d]) && as_int(wanted))
      c.bad(kShapeMismatch, "a mask of `{}` has shape {}; expected that of scores, {}",
            c.node().op_type, str(*type->shape), str(scores));
    dims[d] = wanted;
    fits = false;
  }
  return fits ? x : c.builder().match_cast(x, make<graph::TensorType>(dims, type->dtype));
}

AttentionResults attend(Context& c, const AttentionForm& given) {
  AttentionForm form = given;
  const DType dtype = shaped(form.query)->dtype, wide = is_narrow(dtype) ? kFloat32 : dtype;
  const Groups groups(c, form);
  form.bias = groups.mask(fitted_mask(c, form, form.bias));
  form.allowed = groups.mask(fitted_mask(c, form, form.allowed));
  const Value scores = scaled_scores(c, form, scores_of(c, groups.gather(form.query), form.key));
  Value capped = scores;
  if (form.softcap > 0)
    capped = scaled(c, c.op("tanh", {scaled(c, scores, 1 / form.softcap)}), form.softcap);
  Value masked = capped;
  if (form.bias) masked = c.op("add", {masked, c.cast(form.bias, wide)});
  if (form.allowed) masked = c.op("where", {form.allowed, masked, c.scalar(wide, -kInfinity)});
  Value x = c.cast(masked, form.softmax.is_void() ? wide : form.softmax);
  if (form.change_scores) x = groups.gather(form.change_scores(groups.spread(x)));
  if (form.sink) {
    const Dims heads = *shaped(form.sink)->shape;
    form.sink = groups.mask(c.reshape(form.sink, {int64(1), heads.at(0), int64(1), int64(1)}));
  }
  Value weights = softmax(c, x, form.sink);
  if (form.change_weights) weights = groups.gather(form.change_weights(groups.spread(weights)));
  // Values may have another float type than queries.
  const DType held = shaped(form.value)->dtype, both = held.bits > dtype.bits ? held : dtype;
  Value y = c.cast(product(c, c.cast(weights, both), c.cast(form.value, both)), dtype);
  const Value mask = form.may_be_empty ? mask_of(c, form, wide) : nullptr;
  if (mask) {
    // The softmax of such rows is NaN. Their results are replaced, which are fewer than weights.
    const Value most =
        c.op("max", {mask}, {{"axis", std::vector<int64_t>{-1}}, {"keepdims", true}});
    const Value is_empty = c.op("equal", {most, c.scalar(wide, -kInfinity)});
    const auto guarded = [&](const Value& x) {
      return c.op("where", {is_empty, c.scalar(shaped(x)->dtype, 0), x});
    };
    y = guarded(y);
    if (form.shows == Shown::kWeights) weights = guarded(weights);
  }
  const Value shown[] = {nullptr, scores, capped, masked, weights};
  const Value also = shown[static_cast<size_t>(form.shows)];
  return {groups.spread(y), also ? groups.spread(also) : nullptr};
}

Value as_heads(Context& c, const Value& x, int64_t heads) {
  const Dims shape = *shaped(x)->shape;
  const auto width = as_int(shape.at(2));
  if (heads < 1 || (width && *width % heads != 0))
    c.bad(kShapeMismatch, "`{}` divides {} into {} heads", c.node().op_type, str(shape[2]), heads);
  const Expr depth = arith::simplify(floordiv(shape[2], heads));
  const Value whole =
      c.fitted(x, {Expr(), Expr(), arith::simplify(depth * heads)}, "an operand of heads");
  return c.reshape(whole, {shape[0], shape[1], int64(heads), depth});
}

Value split_heads(Context& c, const Value& x, int64_t heads) {
  return c.transpose(as_heads(c, x, heads), {0, 2, 1, 3});
}

Value join_heads(Context& c, const Value& x) {
  const Dims shape = *shaped(x)->shape;
  return c.reshape(c.transpose(x, {0, 2, 1, 3}),
                   {shape[0], shape[2], arith::simplify(shape[1] * shape[3])});
}

// x[..., begin:end].
static Value last_axis(Context& c, const Value& x, const Expr& begin, const Expr& end) {
  const auto one = [&](const Expr& value) { return c.shape_value({value}); };
  const Value part =
      c.op("strided_slice", {x, one(int64(shaped(x)->ndim - 1)), one(begin), one(end)});
  Dims dims(static_cast<size_t>(shaped(x)->ndim));
  dims.back() = arith::simplify(end - begin);
  return c.fitted(part, dims, "the elements that are turned");
}

Value inverse_root(Context& c, const Expr& dim) {
  return c.op("rsqrt", {c.cast(c.materialise(Elements{kInt64, {}, {dim}}), kFloat64)});
}

Value rotate(Context& c, const RotaryForm& form) {
  const Ref<graph::TensorType> type = shaped(form.x);
  const Expr depth = type->dim(3), dims = form.dims ? form.dims : depth;
  const Expr half = arith::simplify(floordiv(dims, int64(2)));
  const bool turns_all = arith::proves_equal(dims, depth);
  c.require(logical_and(eq(floormod(dims, int64(2)), int64(0)),
                        turns_all ? boolean(true) : logical_and(dims >= int64(0), dims <= depth)),
            kBadAttribute,
            fmt::format("`{}` turns {} elements of heads of {}; expected an even number of them",
                        c.node().op_type, str(dims), str(depth)));
  const DType wide = is_narrow(type->dtype) ? kFloat32 : type->dtype;
  Dims pairs = *type->shape;
  pairs[3] = form.interleaved ? half : int64(2);
  pairs.push_back(form.interleaved ? int64(2) : half);
  const int64_t of_pair = form.interleaved ? 4 : 3;
  // The angles of each row, where the pairs stand.
  const auto angles = [&](const Value& table) {
    Value all = form.positions ? c.op("take", {table, form.positions}, {{"axis", 0}}) : table;
    Dims held = *shaped(all)->shape;
    if (held.size() != 3 || graph::dims_agree(held[2], half) == graph::DimsAgree::kNo)
      c.bad(kShapeMismatch, "`{}` has angles of shape {}; expected {} for each row",
            c.node().op_type, str(held), str(half));
    all = c.fitted(all, {Expr(), Expr(), half}, "the table of angles");
    held[2] = half;
    Dims shape(5, int64(1));
    shape[0] = held[0];
    shape[static_cast<size_t>(form.rows)] = held[1];
    shape[form.interleaved ? 3 : 4] = held[2];
    return c.cast(c.reshape(all, shape), wide);
  };
  const Value whole = c.cast(form.x, wide);
  const Value turns = turns_all ? whole : last_axis(c, whole, int64(0), dims);
  const Expr even = arith::simplify(half * 2);
  const Value x = c.reshape(
      c.fitted(turns, {Expr(), Expr(), Expr(), even}, "the elements that are turned"), pairs);
  Dims places(5, int64(1));
  places[static_cast<size_t>(of_pair)] = int64(2);
  Elements signs{wide, as_ints(places).value(), {imm(wide, -1.0), imm(wide, 1.0)}};
  const Value sin = c.op("multiply", {angles(form.sin), c.materialise(signs)});
  const Value other = c.op("flip", {x}, {{"axis", of_pair}});
  Value y = c.op("add", {c.op("multiply", {x, angles(form.cos)}), c.op("multiply", {other, sin})});
  Dims turned = *type->shape;
  turned[3] = even;
  y = c.fitted(c.cast(c.reshape(y, turned), type->dtype), {Expr(), Expr(), Expr(), dims},
               "the elements that are turned");
  if (turns_all) return y;
  const Value rest = last_axis(c, form.x, dims, depth);
  return c.op("concat", {make<graph::Tuple>(std::vector<Value>{y, rest})}, {{"axis", 3}});
}

Value row_positions(Context& c, const Expr& first, const Expr& count) {
  const Value all =
      c.op("arange", {c.prim(first), c.prim(arith::simplify(first + count)), c.prim(int64(1))},
           {{"dtype", kInt64}});
  return c.reshape(all, {count, int64(1)});
}

Value column_positions(Context& c, const Expr& count) {
  return c.op("arange", {c.prim(int64(0)), c.prim(count), c.prim(int64(1))}, {{"dtype", kInt64}});
}

Value both(Context& c, const Value& a, const Value& b) {
  if (!a || !b) return a ? a : b;
  return c.op("logical_and", {a, b});
}

}  // namespace tenon::onnx
