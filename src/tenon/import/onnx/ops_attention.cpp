// SPDX-License-Identifier: Apache-2.0
// Attention and what stands around it in language models.
#include <cmath>
#include <limits>

#include "tenon/arith/analyzer.h"
#include "tenon/import/onnx/attention.h"

namespace tenon::onnx {

namespace {

// ---- Attention ----------------------------------------------------------------------------------

enum Input : size_t { kQuery, kKey, kValue, kMask, kPastKey, kPastValue, kLengths };

// Columns that a mask does not reach are masked.
Value padded_mask(Context& c, const Value& mask, const Expr& columns) {
  const Ref<graph::TensorType> type = shaped(mask);
  if (type->ndim < 1) return mask;
  const Expr held = type->dim(-1), missing = arith::simplify(columns - held);
  if (is_int(missing, 0)) return mask;
  if (const auto known = as_int(missing); known && *known < 0)
    c.bad(kShapeMismatch, "the mask of `{}` has {} columns; expected at most {}", c.node().op_type,
          str(held), str(columns));
  Dims rest = *type->shape;
  rest.back() = missing;
  const double value = type->dtype == kBool ? 0 : -std::numeric_limits<double>::infinity();
  if (type->dtype != kBool && !type->dtype.is_float())
    unsupported("a mask of integers that is padded");
  const Value fill = c.op("full", {c.shape_value(rest), c.scalar(type->dtype, value)});
  return c.op("concat", {make<graph::Tuple>(std::vector<Value>{mask, fill})},
              {{"axis", type->ndim - 1}});
}

// Which columns each row sees, by the attributes and the lengths: null where it sees all.
Value visible(Context& c, const Expr& rows, const Expr& columns, const Expr& past) {
  const bool causal = c.flag_attr("is_causal");
  const int64_t left = c.opset() >= 25 ? c.int_attr("left_window_size", -1) : -1;
  const int64_t right = c.opset() >= 25 ? c.int_attr("right_window_size", -1) : -1;
  for (const int64_t window : {left, right})
    if (window < -1)
      c.bad(kBadAttribute, "a window of `Attention` has size {}; expected -1 or more", window);
  if (!causal && left < 0 && right < 0 && !c.has(kLengths)) return nullptr;
  const Value column = column_positions(c, columns);
  Value allowed, lengths;
  if (c.has(kLengths)) {
    lengths = c.reshape(c.value(kLengths), {c.shape(kLengths).at(0), int64(1), int64(1), int64(1)});
    allowed = c.op("less", {column, lengths});
  }
  if (!causal && left < 0 && right < 0) return allowed;
  // Where lengths are given, the last row stands at the end of its own.
  Value row = row_positions(c, lengths ? arith::simplify(int64(0) - rows) : past, rows);
  if (lengths) row = c.op("add", {row, lengths});
  const auto shifted = [&](int64_t by) {
    return by == 0 ? row : c.op("add", {row, c.scalar(kInt64, static_cast<double>(by))});
  };
  if (causal || right >= 0)
    allowed = both(c, c.op("less_equal", {column, shifted(causal ? 0 : right)}), allowed);
  if (left >= 0) allowed = both(c, c.op("greater_equal", {column, shifted(-left)}), allowed);
  return allowed;
}

DType softmax_dtype(Context& c) {
  if (!c.has_attr("softmax_precision")) return kVoid;
  const int64_t number = c.int_attr("softmax_precision");
  const auto dtype = dtype_of(number);
  if (!dtype || !dtype->is_float() || dtype->bits < 16)
    c.bad(kBadAttribute, "attribute `softmax_precision` is {}; expected a floating-point type",
          data_type_name(number));
  return *dtype;
}

Results convert_attention(Context& c) {
  const int64_t ndim = c.ndim(kQuery);
  for (const size_t i : {kQuery, kKey, kValue})
    if (c.ndim(i) != ndim || (ndim != 3 && ndim != 4))
      c.bad(kRankMismatch, "operand {} of `Attention` has rank {}; expected {}", i, c.ndim(i),
            ndim == 3   ? "3, as the first"
            : ndim == 4 ? "4, as the first"
                        : "3 or 4");
  if (c.has(kPastKey) != c.has(kPastValue))
    c.bad(kBadModel, "`Attention` has one of past_key and past_value; expected both or none");
  if (c.has(kPastKey) && c.has(kLengths))
    c.bad(kBadModel, "`Attention` has both a past and nonpad_kv_seqlen");
  AttentionForm form;
  if (ndim == 3) {
    const int64_t heads = c.int_attr("q_num_heads"), groups = c.int_attr("kv_num_heads");
    form.query = split_heads(c, c.value(kQuery), heads);
    form.key = split_heads(c, c.value(kKey), groups);
    form.value = split_heads(c, c.value(kValue), groups);
  } else {
    c.ignore({"q_num_heads", "kv_num_heads"});
    form.query = c.value(kQuery);
    form.key = c.value(kKey);
    form.value = c.value(kValue);
  }
  Expr past = int64(0);
  if (c.has(kPastKey)) {
    const auto after = [&](size_t i, const Value& next) {
      return c.op("concat", {make<graph::Tuple>(std::vector<Value>{c.value(i), next})},
                  {{"axis", 2}});
    };
    past = c.shape(kPastKey).at(2);
    form.key = after(kPastKey, form.key);
    form.value = after(kPastValue, form.value);
  }
  const Expr rows = shaped(form.query)->dim(2), columns = shaped(form.key)->dim(2);
  if (c.has_attr("scale")) form.scale = c.float_attr("scale");
  form.softcap = c.float_attr("softcap", 0);
  form.softmax = softmax_dtype(c);
  form.allowed = visible(c, rows, columns, past);
  if (c.has(kMask)) {
    const Value mask = fitted_mask(c, form, padded_mask(c, c.value(kMask), columns));
    if (shaped(mask)->dtype == kBool)
      form.allowed = both(c, form.allowed, mask);
    else
      form.bias = mask;
  }
  // Causal alone leaves the first column to every row.
  form.may_be_empty =
      c.has(kMask) || c.has(kLengths) ||
      (c.opset() >= 25 && (c.has_attr("left_window_size") || c.has_attr("right_window_size")));
  const int64_t mode = c.int_attr("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3)
    c.bad(kBadAttribute, "attribute `qk_matmul_output_mode` is {}; expected 0 to 3", mode);
  if (c.output_count() > 3) form.shows = static_cast<Shown>(mode + 1);
  const AttentionResults all = attend(c, form);
  Results out = {ndim == 3 ? join_heads(c, all.y) : all.y, form.key, form.value};
  if (all.shown) out.push_back(c.cast(all.shown, c.dtype(kQuery)));
  return out;
}

// ---- FlexAttention ------------------------------------------------------------------------------

Results convert_flex_attention(Context& c) {
  for (const size_t i : {kQuery, kKey, kValue})
    if (c.ndim(i) != 4)
      c.bad(kRankMismatch, "operand {} of `FlexAttention` has rank {}; expected 4", i, c.ndim(i));
  AttentionForm form{c.value(kQuery), c.value(kKey), c.value(kValue)};
  if (c.has_attr("scale")) form.scale = c.float_attr("scale");
  form.softmax = softmax_dtype(c);
  const auto changed = [&](const char* name) -> std::function<Value(const Value&)> {
    if (!c.has_attr(name)) return {};
    return [&c, name, graph = c.graph_attr(name)](const Value& x) {
      const std::vector<Value> results = c.inlined(*graph, {x});
      const Ref<graph::TensorType> before = shaped(x);
      const Ref<graph::TensorType> after = results.size() == 1 ? shaped(results[0]) : nullptr;
      if (!after || after->dtype != before->dtype ||
          !arith::proves_equal(*after->shape, *before->shape))
        c.bad(kTypeMismatch, "graph `{}` of `FlexAttention` gives {}; expected {}", name,
              after ? graph::str(after) : fmt::format("{} results", results.size()),
              graph::str(before));
      return results[0];
    };
  };
  form.change_scores = changed("score_mod");
  form.change_weights = changed("prob_mod");
  return {attend(c, form).y};
}

// ---- RotaryEmbedding ----------------------------------------------------------------------------

Results convert_rotary(Context& c) {
  RotaryForm form;
  const int64_t ndim = c.ndim(0);
  if (ndim != 3 && ndim != 4)
    c.bad(kRankMismatch, "`RotaryEmbedding` of a tensor of rank {}; expected 3 or 4", ndim);
  form.x = c.value(0);
  form.rows = 2;
  const int64_t heads = c.int_attr("num_heads", 0);
  if (ndim == 3) {
    form.x = as_heads(c, form.x, heads);
    form.rows = 1;
  }
  form.cos = c.value(1);
  form.sin = c.value(2);
  form.positions = c.value_or_null(3);
  if (const int64_t dims = c.int_attr("rotary_embedding_dim", 0); dims != 0)
    form.dims = int64(dims);
  form.interleaved = c.flag_attr("interleaved");
  return {c.reshape(rotate(c, form), c.shape(0))};
}

// ---- LinearAttention ----------------------------------------------------------------------------

Results convert_linear_attention(Context& c) {
  c.ignore({"chunk_size"});
  const int64_t heads = c.int_attr("q_num_heads"), groups = c.int_attr("kv_num_heads");
  const std::string rule = c.string_attr("update_rule", "gated_delta");
  const bool gated = rule == "gated" || rule == "gated_delta";
  const bool delta = rule == "delta" || rule == "gated_delta";
  if (!gated && !delta && rule != "linear")
    c.bad(kBadAttribute,
          "attribute `update_rule` is `{}`; expected linear, gated, delta or gated_delta", rule);
  for (const auto& [i, wanted, name] :
       {std::tuple{4, gated, "decay"}, std::tuple{5, delta, "beta"}})
    if (c.has(static_cast<size_t>(i)) != wanted)
      c.bad(kBadModel, "`LinearAttention` with update rule {} has {} operand `{}`", rule,
            wanted ? "no" : "an", name);
  for (size_t i = 0; i < c.input_count(); ++i)
    if (c.has(i) && c.ndim(i) != (i == 3 ? 4 : 3))
      c.bad(kRankMismatch, "operand {} of `LinearAttention` has rank {}; expected {}", i, c.ndim(i),
            i == 3 ? 4 : 3);
  Value query = as_heads(c, c.value(0), heads);
  const Value key = as_heads(c, c.value(1), groups), value = as_heads(c, c.value(2), groups);
  const Dims q = *shaped(query)->shape, v = *shaped(value)->shape;
  const DType dtype = c.dtype(0);
  const Value past = c.has(3) ? c.value(3)
                              : c.op("zeros", {c.shape_value({q[0], int64(groups), q[3], v[3]})},
                                     {{"dtype", dtype}});
  // One number for each head, or one for each element of its keys.
  const Value decay = gated ? as_heads(c, c.value(4), groups) : nullptr;
  double scale = c.float_attr("scale", 0);
  if (scale == 0) {
    const auto depth = as_int(q[3]);
    if (!depth) query = c.op("multiply", {query, c.cast(inverse_root(c, q[3]), dtype)});
    scale = depth ? 1 / std::sqrt(static_cast<double>(*depth)) : 1;
  }
  const Value all =
      c.op("nn.linear_attention", {query, key, value, past, decay, delta ? c.value(5) : nullptr},
           {{"scale", scale}});
  const Value y = c.builder().emit(make<graph::TupleGetItem>(all, 0, c.origin()));
  const Value state = c.builder().emit(make<graph::TupleGetItem>(all, 1, c.origin()));
  return {c.reshape(y, {q[0], q[1], arith::simplify(q[2] * v[3])}), state};
}

// ---- CausalConvWithState ------------------------------------------------------------------------

Results convert_causal_conv(Context& c) {
  const std::string activation = c.string_attr("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    c.bad(kBadAttribute, "attribute `activation` is `{}`; expected none, silu or swish",
          activation);
  if (c.ndim(0) != 3 || c.ndim(1) != 3)
    c.bad(kRankMismatch, "`CausalConvWithState` has operands of rank {} and {}; expected 3",
          c.ndim(0), c.ndim(1));
  const Dims shape = c.shape(0);
  const Expr taps = c.shape(1)[2];
  auto channels = as_int(c.shape(1)[0]);
  if (!channels) channels = as_int(shape[1]);
  if (!channels) unsupported("a symbolic number of channels");
  c.require(taps >= int64(1), kShapeMismatch,
            fmt::format("`CausalConvWithState` has a weight of {} taps", str(taps)));
  const Value weight = c.fitted(c.value(1), {int64(*channels), Expr(), Expr()}, "the weight");
  const DType dtype = c.dtype(0), wide = dtype.bits < 32 ? kFloat32 : dtype;
  const auto tuple = [](const Value& a, const Value& b) {
    return make<graph::Tuple>(std::vector<Value>{a, b});
  };
  // The input after what came before it: the state, or zeros.
  const Expr before = arith::simplify(taps - 1);
  const auto known = as_int(before);
  const auto padding = [&]() -> Value {
    if (known) return c.op("nn.pad", {c.value(0)}, {{"pad_width", Ints{0, 0, 0, 0, *known, 0}}});
    const Expr none = int64(0);
    return c.op("nn.pad", {c.value(0), c.shape_value({none, none, none, none, before, none})},
                {{"pad_mode", "constant"}});
  };
  const Value padded =
      c.has(3) ? c.op("concat", {tuple(c.value(3), c.value(0))}, {{"axis", 2}}) : padding();
  Value y = c.op("nn.conv1d", {padded, weight}, {{"groups", *channels}, {"out_dtype", wide}});
  if (c.has(2))
    y = c.op("add", {y, c.cast(c.reshape(c.value(2), {c.shape(2).at(0), int64(1)}), wide)});
  if (activation != "none") y = c.op("nn.silu", {c.cast(y, dtype)});
  const Value state = c.op("strided_slice",
                           {padded, c.shape_value({int64(2)}), c.shape_value({shape[2]}),
                            c.shape_value({arith::simplify(shape[2] + before)})},
                           {{"assume_inbound", true}});
  return {c.cast(y, dtype), state};
}

// ---- TensorScatter ------------------------------------------------------------------------------

Results convert_tensor_scatter(Context& c) {
  std::vector<Value> args = {c.value(0), c.value(1)};
  if (c.has(2)) args.push_back(c.value(2));
  return {c.op("tensor_scatter", args,
               {{"axis", c.int_attr("axis", -2)}, {"mode", c.string_attr("mode", "linear")}})};
}

}  // namespace

std::vector<OperatorRow> attention_rows() {
  return {
      {"Attention", 23, 3, 7, convert_attention, "floats"},
      {"FlexAttention", 1, 3, 3, convert_flex_attention, "floats", "", "ai.onnx.preview"},
      {"RotaryEmbedding", 23, 3, 4, convert_rotary, "floats"},
      {"LinearAttention", 27, 3, 6, convert_linear_attention, "floats"},
      {"CausalConvWithState", 27, 2, 4, convert_causal_conv, "floats"},
      {"TensorScatter", 24, 2, 3, convert_tensor_scatter, "all"},
  };
}

}  // namespace tenon::onnx
