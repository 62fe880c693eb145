// SPDX-License-Identifier: Apache-2.0
// Operators of com.microsoft that ONNX Runtime's optimizer and exporters of transformers write.
#include <limits>

#include "tenon/arith/analyzer.h"
#include "tenon/import/onnx/attention.h"

namespace tenon::onnx {

namespace {

Value tuple_of(std::vector<Value> values) { return make<graph::Tuple>(std::move(values)); }

DType wide_of(DType dtype) { return dtype.is_float() && dtype.bits < 32 ? kFloat32 : dtype; }

// x[..., begin:end, ...] along an axis.
Value slice(Context& c, const Value& x, int64_t axis, int64_t begin, int64_t end) {
  const auto one = [&](int64_t value) { return c.shape_value({int64(value)}); };
  return c.op("strided_slice", {x, one(axis), one(begin), one(end)});
}

// The same of extents that may be symbols: the run checks that the axis reaches so far.
Value slice(Context& c, const Value& x, int64_t axis, const Expr& begin, const Expr& extent,
            std::string_view what) {
  const Value part = c.op("strided_slice", {x, c.shape_value({int64(axis)}), c.shape_value({begin}),
                                            c.shape_value({arith::simplify(begin + extent)})});
  Dims dims(static_cast<size_t>(shaped(part)->ndim));
  dims[static_cast<size_t>(axis)] = extent;
  return c.fitted(part, dims, what);
}

void refuse(Context& c, size_t i, std::string_view name) {
  if (c.has(i)) unsupported("operand `{}`", name);
}

bool asks_for(const Context& c, size_t output) {
  return output < c.output_count() && !c.node().outputs[output].empty();
}

// ---- normalisation ------------------------------------------------------------------------------

Results convert_skip_norm(Context& c, bool centres) {
  const double epsilon = c.float_attr("epsilon", 1e-12);
  const size_t bias = centres ? 4 : 3;
  Value sum = c.op("add", {c.value(0), c.value(1)});
  if (c.has(bias)) sum = c.op("add", {sum, c.value(bias)});
  Attrs attrs{{"axes", Ints{-1}}, {"epsilon", epsilon}};
  Value y;
  if (centres) {
    std::vector<Value> args = {sum, c.value(2)};
    if (c.has(3)) args.push_back(c.value(3));
    attrs.set("center", c.has(3));
    y = c.op("nn.layer_norm", args, attrs);
  } else {
    y = c.op("nn.rms_norm", {sum, c.value(2)}, attrs);
  }
  return {y, nullptr, nullptr, sum};  // the statistics are of training
}

// In the domain of ONNX itself, where ONNX Runtime defines it.
Results convert_simplified_norm(Context& c) {
  c.ignore({"stash_type"});
  const int64_t axis = c.axis(c.int_attr("axis", -1), c.ndim(0));
  const double epsilon = c.float_attr("epsilon", 1e-5);
  Ints axes;
  for (int64_t d = axis; d < c.ndim(0); ++d) axes.push_back(d);
  const Value y = c.op("nn.rms_norm", {c.value(0), c.cast(c.value(1), c.dtype(0))},
                       {{"axes", axes}, {"epsilon", epsilon}});
  if (!asks_for(c, 1)) return {y};
  const DType wide = wide_of(c.dtype(0));
  const Value squares = c.op("square", {c.cast(c.value(0), wide)});
  const Value mean = c.op("mean", {squares}, {{"axis", axes}, {"keepdims", true}});
  return {y, c.op("rsqrt", {c.op("add", {mean, c.scalar(wide, epsilon)})})};
}

Results convert_embed_norm(Context& c) {
  const double epsilon = c.float_attr("epsilon", 1e-12);
  c.ignore({"mask_index_type"});
  if (c.ndim(0) != 2)
    c.bad(kRankMismatch, "operand 0 of `EmbedLayerNormalization` has rank {}; expected 2",
          c.ndim(0));
  const Dims shape = c.shape(0);
  const auto rows = [&](size_t table, const Value& ids) {
    return c.op("take", {c.value(table), ids}, {{"axis", 0}});
  };
  Value ids;
  if (c.has(8))
    ids = c.value(8);
  else
    ids = column_positions(c, shape[1]);
  Value sum = c.op("add", {rows(2, c.value(0)), rows(3, ids)});
  if (c.has(1)) sum = c.op("add", {sum, rows(4, c.value(1))});
  const Value y = c.op("nn.layer_norm", {sum, c.value(5), c.value(6)},
                       {{"axes", Ints{-1}}, {"epsilon", epsilon}});
  // How many words each row has.
  Value words;
  if (c.has(7)) {
    const Value is_word = c.op("equal", {c.value(7), c.scalar(c.dtype(7), 1)});
    words = c.op("sum", {c.cast(is_word, kInt32)}, {{"axis", Ints{1}}});
  } else if (asks_for(c, 1)) {
    words = c.op("zeros", {c.shape_value({shape[0]})}, {{"dtype", kInt32}});
  }
  return {y, words, sum};
}

// ---- activations --------------------------------------------------------------------------------

Results convert_gelu(Context& c, const char* op) {
  const Value x = c.has(1) ? c.op("add", {c.value(0), c.value(1)}) : c.value(0);
  return {c.op(op, {x})};
}

Results convert_quick_gelu(Context& c) {
  const DType dtype = c.dtype(0), wide = wide_of(dtype);
  const Value x = c.cast(c.value(0), wide);
  const Value gate =
      c.op("sigmoid", {c.op("multiply", {x, c.scalar(wide, c.float_attr("alpha", 1.702))})});
  return {c.cast(c.op("multiply", {x, gate}), dtype)};
}

// ---- FusedMatMul --------------------------------------------------------------------------------

Results convert_fused_matmul(Context& c) {
  const auto operand = [&](size_t i, const char* rows, const char* batch) {
    const bool flips = c.flag_attr(rows), turns = c.flag_attr(batch);
    const int64_t ndim = c.ndim(i);
    if (ndim < 2 || (!flips && !turns)) return c.value(i);
    Ints axes;
    for (int64_t d = 0; d < ndim; ++d) axes.push_back(d);
    // The first axis stands before the last.
    if (turns) std::rotate(axes.begin(), axes.begin() + 1, axes.end() - 1);
    if (flips) std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
    return c.transpose(c.value(i), axes);
  };
  const Value a = operand(0, "transA", "transBatchA"), b = operand(1, "transB", "transBatchB");
  const DType dtype = c.dtype(0), wide = wide_of(dtype);
  Value y = c.op("matmul", {a, b}, {{"out_dtype", wide == dtype ? kVoid : wide}});
  const double alpha = c.float_attr("alpha", 1);
  if (alpha != 1) y = c.op("multiply", {y, c.scalar(shaped(y)->dtype, alpha)});
  return {c.cast(y, dtype)};
}

// ---- MatMulNBits --------------------------------------------------------------------------------

// Unpacks numbers of a few bits, packed along the last axis, to one a byte.
Value unpacked(Context& c, const Value& x, int64_t bits, int64_t count) {
  if (bits == 8) return x;
  Dims shape = *shaped(x)->shape;
  const int64_t each = 8 / bits;
  shape.push_back(int64(1));
  Elements shifts{kUInt8, {each}, {}};
  for (int64_t i = 0; i < each; ++i) shifts.values.push_back(imm(kUInt8, i * bits));
  const Value parts =
      c.op("bitwise_and", {c.op("right_shift", {c.reshape(x, shape), c.materialise(shifts)}),
                           c.scalar(kUInt8, static_cast<double>((1 << bits) - 1))});
  shape.pop_back();
  shape.back() = arith::simplify(shape.back() * each);
  const auto axis = static_cast<int64_t>(shape.size()) - 1;
  return slice(c, c.reshape(parts, shape), axis, 0, count);
}

Results convert_matmul_nbits(Context& c) {
  c.ignore({"accuracy_level"});
  const int64_t units = c.int_attr("N"), depth = c.int_attr("K"), block = c.int_attr("block_size"),
                bits = c.int_attr("bits", 4);
  if (c.int_attr("weight_prepacked", 0) != 0) unsupported("weights packed for a device");
  if (bits != 2 && bits != 4 && bits != 8) unsupported("{} bits", bits);
  if (units < 1 || depth < 1 || block < 8 || block > (1 << 20) || block % 8 != 0)
    c.bad(kBadAttribute, "`MatMulNBits` of {} x {} in blocks of {}", depth, units, block);
  refuse(c, 4, "g_idx");
  const int64_t blocks = (depth + block - 1) / block, bytes = block * bits / 8;
  const auto expect = [&](size_t i, const Dims& shape) {
    if (!arith::proves_equal(product(c.shape(i)), product(shape)))
      c.bad(kShapeMismatch, "operand {} of `MatMulNBits` has shape {}; expected {}", i,
            str(c.shape(i)), str(shape));
    return c.reshape(c.value(i), shape);
  };
  const int64_t ndim = c.ndim(0);
  if (ndim < 1 || !arith::proves_equal(c.shape(0).back(), int64(depth)))
    c.bad(kShapeMismatch, "operand 0 of `MatMulNBits` has shape {}; expected rows of {}",
          str(c.shape(0)), depth);
  Value a = c.value(0);
  if (blocks * block != depth) {  // weights behind the last row count nothing
    Ints pads(static_cast<size_t>(2 * ndim), 0);
    pads.back() = blocks * block - depth;
    a = c.op("nn.pad", {a}, {{"pad_width", pads}});
  }
  // Units last, so that their results are neighbours. Constants stay packed.
  std::vector<Value> args = {
      a, c.transpose(expect(1, {int64(units), int64(blocks), int64(bytes)}), {1, 2, 0}),
      c.transpose(expect(2, {int64(units), int64(blocks)}), {1, 0})};
  if (c.has(3)) {
    const int64_t held = (blocks * bits + 7) / 8;
    const Value zeros = c.dtype(3) == kUInt8
                            ? unpacked(c, expect(3, {int64(units), int64(held)}), bits, blocks)
                            : expect(3, {int64(units), int64(blocks)});
    args.push_back(c.transpose(zeros, {1, 0}));
  }
  Value y = c.op("nn.matmul_nbits", args, {{"bits", bits}});
  if (c.has(5)) y = c.op("add", {y, c.value(5)});
  return {y};
}

// ---- RotaryEmbedding ----------------------------------------------------------------------------

// (batch, rows) of one position that all rows follow, or of all positions.
Value positions_of(Context& c, size_t i, const Expr& batch, const Expr& rows) {
  if (c.ndim(i) == 2) return c.value(i);
  const Value first = c.cast(c.reshape(c.value(i), {int64(1), int64(1)}), kInt64);
  const Value all = c.op("add", {first, column_positions(c, rows)});
  return c.op("broadcast_to", {all, c.shape_value({batch, rows})});
}

Results convert_rotary(Context& c) {
  c.ignore({"scale"});
  if (c.flag_attr("is_packed_batching")) unsupported("is_packed_batching");
  RotaryForm form;
  const int64_t ndim = c.ndim(0), dims = c.int_attr("rotary_embedding_dim", 0),
                heads = c.int_attr("num_heads", 0);
  if (ndim != 3 && ndim != 4)
    c.bad(kRankMismatch, "`RotaryEmbedding` of a tensor of rank {}; expected 3 or 4", ndim);
  form.cos = c.value(2);
  form.sin = c.value(3);
  if (dims != 0) form.dims = int64(dims);
  form.interleaved = c.flag_attr("interleaved");
  form.rows = ndim == 3 ? 1 : 2;
  form.x = c.value(0);
  const Dims shape = c.shape(0);
  if (ndim == 3) {
    if (heads == 0) {  // heads are as wide as the angles say
      const Expr depth = arith::simplify(c.shape(2).at(1) * 2);
      const Expr count = arith::simplify(floordiv(shape[2], max(depth, int64(1))));
      c.require(
          logical_and(count >= int64(1), eq(count * depth, shape[2])), kShapeMismatch,
          fmt::format("`{}` divides {} into heads of {}", c.name(), str(shape[2]), str(depth)));
      const Expr width = arith::simplify(count * depth);
      form.x = c.reshape(c.fitted(form.x, {Expr(), Expr(), width}, "operand 0"),
                         {shape[0], shape[1], count, depth});
    } else {
      form.x = as_heads(c, form.x, heads);
    }
  }
  form.positions = positions_of(c, 1, shape[0], shape[static_cast<size_t>(form.rows)]);
  return {c.reshape(rotate(c, form), shape)};
}

// ---- Attention, MultiHeadAttention --------------------------------------------------------------

struct Extents {
  Expr batch, rows, past, columns;
};

// What masked columns get added: null where all count.
Value padding_bias(Context& c, size_t i, const Extents& e, DType dtype) {
  const double filter = c.float_attr("mask_filter_value", -10000);
  if (!c.has(i)) return nullptr;
  const Dims shape = c.shape(i);
  Value allowed;
  if (shape.size() == 1) {
    const Value column = column_positions(c, e.columns);
    const auto bound = [&](const Value& x) {
      return c.reshape(c.cast(x, kInt64), {e.batch, int64(1), int64(1), int64(1)});
    };
    if (arith::proves_equal(shape[0], e.batch)) {
      allowed = c.op("less", {column, bound(c.value(i))});
    } else if (arith::proves_equal(shape[0], arith::simplify(e.batch * 2))) {
      const Value both_bounds = c.reshape(c.value(i), {int64(2), e.batch});
      allowed = both(c, c.op("less", {column, bound(slice(c, both_bounds, 0, 0, 1))}),
                     c.op("greater_equal", {column, bound(slice(c, both_bounds, 0, 1, 2))}));
    } else {
      unsupported("a mask of shape {}", str(shape));
    }
  } else if (shape.size() == 2 || shape.size() == 3) {
    const Value kept = c.op("not_equal", {c.value(i), c.scalar(c.dtype(i), 0)});
    allowed = c.reshape(kept, shape.size() == 2 ? Dims{shape[0], int64(1), int64(1), shape[1]}
                                                : Dims{shape[0], int64(1), shape[1], shape[2]});
  } else {
    unsupported("a mask of rank {}", shape.size());
  }
  return c.op("where", {allowed, c.scalar(dtype, 0), c.scalar(dtype, filter)});
}

// Masks, bias, scale and direction, which both operators state alike; then the result.
Results finish_attention(Context& c, AttentionForm form, const Expr& past, size_t mask,
                         size_t bias) {
  const Dims q = *shaped(form.query)->shape;
  const Extents e{q[0], q[2], past, shaped(form.key)->dim(2)};
  const DType wide = wide_of(shaped(form.query)->dtype);
  form.bias = fitted_mask(c, form, padding_bias(c, mask, e, wide));
  if (c.has(bias)) {
    const Value given = fitted_mask(c, form, c.cast(c.value(bias), wide));
    form.bias = form.bias ? c.op("add", {form.bias, given}) : given;
  }
  if (c.flag_attr("unidirectional"))
    form.allowed =
        c.op("less_equal", {column_positions(c, e.columns), row_positions(c, past, e.rows)});
  if (const double scale = c.float_attr("scale", 0); scale != 0) form.scale = scale;
  return {join_heads(c, attend(c, form).y)};
}

Value after(Context& c, const Value& past, const Value& next) {
  return c.op("concat", {tuple_of({past, next})}, {{"axis", 2}});
}

enum MultiHead : size_t {
  kQuery,
  kKey,
  kValue,
  kBias,
  kPadding,
  kScoreBias,
  kPastKey,
  kPastValue,
  kPastLength,
  kBeams
};

// The queries, keys and values of MultiHeadAttention, with their biases.
void read_projections(Context& c, AttentionForm& form, int64_t heads) {
  // One of several that lie beside one another: (batch, rows, heads, count, depth).
  const auto packed = [&](size_t i, int64_t which) {
    const Dims s = c.shape(i);
    const Value one = slice(c, c.value(i), 3, which, which + 1);
    return c.transpose(c.reshape(one, {s[0], s[1], s[2], s[4]}), {0, 2, 1, 3});
  };
  Expr done = int64(0);  // of the bias
  const auto biased = [&](const Value& x) {
    if (!c.has(kBias)) return x;
    const Ref<graph::TensorType> type = shaped(x);
    const Expr width = arith::simplify(type->dim(3) * heads);
    const Value own = slice(c, c.value(kBias), 0, done, width, "the bias");
    done = arith::simplify(done + width);
    return c.op("add", {x, c.reshape(own, {int64(heads), int64(1), type->dim(3)})});
  };
  const auto separate = [&](size_t i) {
    return c.ndim(i) == 3 ? split_heads(c, c.value(i), heads) : c.value(i);
  };
  if (c.ndim(kQuery) == 5) {
    form.query = biased(packed(kQuery, 0));
    form.key = biased(packed(kQuery, 1));
    form.value = biased(packed(kQuery, 2));
    return;
  }
  form.query = biased(separate(kQuery));
  if (c.ndim(kKey) == 5) {
    form.key = biased(packed(kKey, 0));
    form.value = biased(packed(kKey, 1));
    return;
  }
  if (!c.has(kValue)) c.bad(kBadModel, "`MultiHeadAttention` has a key and no value");
  form.key = separate(kKey);
  form.value = separate(kValue);
  if (c.ndim(kKey) == 3) {  // keys of rank 4 have theirs already
    form.key = biased(form.key);
    form.value = biased(form.value);
  }
}

Results convert_multi_head(Context& c) {
  refuse(c, kBeams, "cache_indirection");
  refuse(c, kPastLength, "past_sequence_length");
  if (asks_for(c, 3)) unsupported("output 3");
  AttentionForm form;
  read_projections(c, form, c.int_attr("num_heads"));
  if (c.has(kPastKey) != c.has(kPastValue))
    c.bad(kBadModel, "`MultiHeadAttention` has one of past_key and past_value; expected both");
  Expr past = int64(0);
  if (c.has(kPastKey)) {
    past = c.shape(kPastKey).at(2);
    form.key = after(c, c.value(kPastKey), form.key);
    form.value = after(c, c.value(kPastValue), form.value);
  }
  Results out = finish_attention(c, form, past, kPadding, kScoreBias);
  out.push_back(form.key);
  out.push_back(form.value);
  return out;
}

// What Attention and QAttention make of the product of their weights, (batch, rows, columns of
// queries, keys and values): the places of the other operands.
struct AfterProduct {
  Dims sizes;
  size_t mask, past, bias;
};

Results attend_to_itself(Context& c, const Value& all, const AfterProduct& form_of) {
  const int64_t heads = c.int_attr("num_heads");
  Expr done = int64(0);
  const auto next = [&](const Expr& width) {
    const Value own = slice(c, all, 2, done, width, "the product of the weights");
    done = arith::simplify(done + width);
    return split_heads(c, own, heads);
  };
  AttentionForm form;
  form.query = next(form_of.sizes[0]);
  form.key = next(form_of.sizes[1]);
  form.value = next(form_of.sizes[2]);
  Expr past = int64(0);
  if (c.has(form_of.past)) {
    const Dims held = c.shape(form_of.past);
    if (held.size() != 5)
      c.bad(kRankMismatch, "the past of `{}` has rank {}; expected 5", c.node().op_type,
            held.size());
    past = held[3];
    const auto half = [&](int64_t which) {
      return c.reshape(slice(c, c.value(form_of.past), 0, which, which + 1),
                       {held[1], held[2], held[3], held[4]});
    };
    form.key = after(c, half(0), form.key);
    form.value = after(c, half(1), form.value);
  }
  Results out = finish_attention(c, form, past, form_of.mask, form_of.bias);
  if (asks_for(c, 1)) {
    const auto one = [&](const Value& x) {
      Dims shape = *shaped(x)->shape;
      shape.insert(shape.begin(), int64(1));
      return c.reshape(x, shape);
    };
    out.push_back(c.op("concat", {tuple_of({one(form.key), one(form.value)})}, {{"axis", 0}}));
  }
  return out;
}

void refuse_shared(Context& c) {
  if (c.flag_attr("do_rotary")) unsupported("do_rotary");
  if (c.flag_attr("past_present_share_buffer")) unsupported("past_present_share_buffer");
}

// How many of the columns of the weights are of queries, keys and values; a third each where nothing
// says it.
Dims columns_of(Context& c, const Ints& stated) {
  const Expr total = c.shape(1).at(1);
  const auto known = as_int(total);
  Dims sizes = to_exprs(stated);
  if (stated.empty()) sizes.assign(3, arith::simplify(floordiv(total, int64(3))));
  bool fits = sizes.size() == 3;
  Expr sum = int64(0);
  for (const Expr& size : sizes) {
    fits = fits && as_int(size).value_or(1) >= 1;
    sum = arith::simplify(sum + size);
  }
  if (!fits || (known && !is_int(sum, *known)))
    c.bad(kShapeMismatch, "`{}` has weights of {} columns for queries, keys and values", c.name(),
          str(total));
  return sizes;
}

// The weights with as many columns.
Value weights_of(Context& c, const Dims& sizes) {
  return c.fitted(c.value(1), {Expr(), arith::simplify(sizes[0] + sizes[1] + sizes[2])},
                  "operand 1");
}

// Attention with the product of its weights: input, weights, bias, mask, past, bias of the scores.
Results convert_attention(Context& c) {
  refuse_shared(c);
  c.ignore({"rotary_embedding_dim"});
  refuse(c, 6, "past_sequence_length");
  const Dims sizes = columns_of(c, c.ints_attr("qkv_hidden_sizes", {}));
  const DType dtype = c.dtype(0), wide = wide_of(dtype);
  Value all = c.op("matmul", {c.value(0), weights_of(c, sizes)},
                   {{"out_dtype", wide == dtype ? kVoid : wide}});
  if (c.has(2)) all = c.op("add", {all, c.cast(c.value(2), wide)});
  return attend_to_itself(c, c.cast(all, dtype), {sizes, 3, 4, 5});
}

// The same of integers: input, weights, bias, their scales, mask, their zero points, past.
Results convert_qattention(Context& c) {
  enum : size_t { kBiases = 2, kXScale, kWScale, kMask, kXZero, kWZero, kPast, kNone };
  refuse_shared(c);
  const Dims sizes = columns_of(c, {});
  for (const size_t i : {size_t{0}, size_t{1}})
    if (c.dtype(i) != kInt8 && c.dtype(i) != kUInt8)
      c.bad(kDTypeMismatch, "operand {} of `QAttention` has dtype {}; expected int8 or uint8", i,
            c.dtype(i).str());
  const Value sums = convert_as(
      c, "MatMulInteger", 13,
      {c.value(0), weights_of(c, sizes), c.value_or_null(kXZero), c.value_or_null(kWZero)})[0];
  // One scale of the input, one or one for each column of the weights.
  const auto scale = [&](size_t i) {
    return is_int(product(c.shape(i)), 1) ? c.reshape(c.value(i), {}) : c.value(i);
  };
  const Value factor = c.op("multiply", {scale(kXScale), scale(kWScale)});
  const Value all = c.op("multiply", {c.cast(sums, shaped(factor)->dtype), factor});
  return attend_to_itself(c, c.op("add", {all, c.value(kBiases)}), {sizes, kMask, kPast, kNone});
}

// ---- GroupQueryAttention ------------------------------------------------------------------------

enum GroupQuery : size_t {
  kGQuery,
  kGKey,
  kGValue,
  kGPastKey,
  kGPastValue,
  kGLast,
  kGTotal,
  kGCos,
  kGSin,
  kGPositions,
  kGBias,
  kGSink
};

void check_group_query(Context& c) {
  static constexpr std::pair<size_t, const char*> kRefused[] = {{12, "k_scale"},
                                                                {13, "v_scale"},
                                                                {14, "q_norm_weight"},
                                                                {15, "k_norm_weight"},
                                                                {16, "query_seqlens"}};
  for (const auto& [i, name] : kRefused) refuse(c, i, name);
  for (const char* name : {"k_quant_type", "v_quant_type"})
    if (c.string_attr(name, "NONE") != "NONE") unsupported("a quantised cache");
  if (c.flag_attr("sliding_window_cache")) unsupported("sliding_window_cache");
  if (c.int_attr("qk_output", 0) != 0 || asks_for(c, 3)) unsupported("qk_output");
  c.ignore({"kv_cache_bit_width", "qk_norm_epsilon", "q_norm_epsilon", "k_norm_epsilon"});
  if (c.has(kGKey) != c.has(kGValue) || c.has(kGPastKey) != c.has(kGPastValue))
    c.bad(kBadModel, "`GroupQueryAttention` has one of key and value alone");
}

// The cache with the new rows of each entry behind those that it holds.
Value updated(Context& c, const Value& cache, const Value& rows, const Expr& length,
              const Value& starts) {
  const Dims shape = *shaped(rows)->shape;
  const Expr held = cache ? shaped(cache)->dim(2) : int64(0);
  const Expr missing = arith::simplify(length - held);
  Value room = cache;
  if (!is_int(missing, 0)) {
    const Value empty = c.op("zeros", {c.shape_value({shape[0], shape[1], missing, shape[3]})},
                             {{"dtype", shaped(rows)->dtype}});
    room = cache ? after(c, cache, empty) : empty;
  }
  return c.op("tensor_scatter", {room, rows, starts}, {{"axis", 2}, {"mode", "linear"}});
}

// Queries, keys and values as (batch, rows, heads, depth).
void read_group_query(Context& c, AttentionForm& form, int64_t heads, int64_t groups) {
  if (c.has(kGKey)) {
    form.query = as_heads(c, c.value(kGQuery), heads);
    form.key = as_heads(c, c.value(kGKey), groups);
    form.value = as_heads(c, c.value(kGValue), groups);
    return;
  }
  const Value all = as_heads(c, c.value(kGQuery), heads + 2 * groups);
  form.query = slice(c, all, 2, 0, heads);
  form.key = slice(c, all, 2, heads, heads + groups);
  form.value = slice(c, all, 2, heads + groups, heads + 2 * groups);
}

Results convert_group_query(Context& c) {
  check_group_query(c);
  AttentionForm form;
  read_group_query(c, form, c.int_attr("num_heads"), c.int_attr("kv_num_heads"));
  const Dims q = *shaped(form.query)->shape;
  const Expr rows = q[1];
  const Dims totals = c.dims(kGTotal, "total_sequence_length");
  if (totals.size() != 1)
    c.bad(kBadModel, "`GroupQueryAttention` has {} total lengths; expected 1", totals.size());
  const Expr held = c.has(kGPastKey) ? c.shape(kGPastKey).at(2) : int64(0);
  Expr length = tenon::cast(kInt64, totals[0]);
  arith::Analyzer analyzer;
  if (analyzer.proves_less_equal(length, held))
    length = held;
  else if (!analyzer.proves_less_equal(held, length))
    length = arith::simplify(max(held, length));
  // Rows of each entry that the cache holds before; none where a first prompt is padded.
  const Value last = c.cast(c.reshape(c.value(kGLast), {q[0]}), kInt64);
  const Value before = c.op(
      "add",
      {last, c.op("full", {c.shape_value({int64(1)}), c.prim(arith::simplify(int64(1) - rows))},
                  {{"dtype", kInt64}})});
  const Value starts = c.op("maximum", {before, c.scalar(kInt64, 0)});
  const Value row = c.op("add", {c.reshape(starts, {q[0], int64(1)}), column_positions(c, rows)});
  if (c.flag_attr("do_rotary")) {
    RotaryForm turn;
    turn.rows = 1;
    turn.cos = c.value(kGCos);
    turn.sin = c.value(kGSin);
    turn.positions = c.has(kGPositions) ? c.value(kGPositions) : row;
    turn.dims = arith::simplify(c.shape(kGCos).at(1) * 2);
    turn.interleaved = c.flag_attr("rotary_interleaved");
    for (Value* x : {&form.query, &form.key}) {
      turn.x = *x;
      *x = rotate(c, turn);
    }
  } else {
    c.ignore({"rotary_interleaved"});
  }
  for (Value* x : {&form.query, &form.key, &form.value}) *x = c.transpose(*x, {0, 2, 1, 3});
  form.key = updated(c, c.value_or_null(kGPastKey), form.key, length, starts);
  form.value = updated(c, c.value_or_null(kGPastValue), form.value, length, starts);
  const Value all_keys = form.key, all_values = form.value;
  // A cache may have room for more.
  const Expr total = tenon::cast(kInt64, totals[0]);
  if (!arith::proves_equal(total, length))
    for (Value* x : {&form.key, &form.value})
      *x = c.op("strided_slice",
                {*x, c.shape_value({int64(2)}), c.shape_value({int64(0)}), c.shape_value({total})},
                {{"assume_inbound", true}});
  const Value column = column_positions(c, total);
  const Value place = c.reshape(row, {q[0], int64(1), rows, int64(1)});
  const bool causal = c.flag_attr("causal", true);
  const Value bound = causal ? place : c.reshape(last, {q[0], int64(1), int64(1), int64(1)});
  form.allowed = c.op("less_equal", {column, bound});
  const int64_t window = c.int_attr("local_window_size", -1);
  if (window >= 0)
    form.allowed =
        both(c, form.allowed,
             c.op("greater",
                  {c.op("add", {column, c.scalar(kInt64, static_cast<double>(window))}), place}));
  if (const double scale = c.float_attr("scale", 0); scale != 0) form.scale = scale;
  form.softcap = c.float_attr("softcap", 0);
  form.bias = c.value_or_null(kGBias);
  form.sink = c.value_or_null(kGSink);
  if (!form.sink && c.flag_attr("smooth_softmax"))
    form.sink = c.op("zeros", {c.shape_value({q[2]})}, {{"dtype", c.dtype(0)}});
  return {join_heads(c, attend(c, form).y), all_keys, all_values};
}

}  // namespace

std::vector<OperatorRow> transformer_rows() {
  return {
      contrib(
          "SkipLayerNormalization", 3, 5, [](Context& c) { return convert_skip_norm(c, true); },
          "floats", "without statistics"),
      contrib(
          "SkipSimplifiedLayerNormalization", 3, 4,
          [](Context& c) { return convert_skip_norm(c, false); }, "floats", "without statistics"),
      {"SimplifiedLayerNormalization", 1, 2, 2, convert_simplified_norm, "floats"},
      contrib("EmbedLayerNormalization", 7, 9, convert_embed_norm, "floats"),
      contrib(
          "BiasGelu", 2, 2, [](Context& c) { return convert_gelu(c, "nn.gelu"); }, "floats"),
      contrib(
          "Gelu", 1, 1, [](Context& c) { return convert_gelu(c, "nn.gelu"); }, "floats"),
      contrib(
          "FastGelu", 1, 2, [](Context& c) { return convert_gelu(c, "nn.gelu_tanh"); }, "floats"),
      contrib("QuickGelu", 1, 1, convert_quick_gelu, "floats"),
      contrib("FusedMatMul", 2, 2, convert_fused_matmul, "floats"),
      contrib("TransposeMatMul", 2, 2, convert_fused_matmul, "floats"),
      contrib("MatMulNBits", 3, 6, convert_matmul_nbits, "floats", "2, 4 or 8 bits; no g_idx"),
      contrib("RotaryEmbedding", 4, 4, convert_rotary, "floats", "no packed batches"),
      contrib("MultiHeadAttention", 1, 10, convert_multi_head, "floats",
              "no shared buffers, beams, or masks of 3 * batch + 2 numbers"),
      contrib("Attention", 2, 7, convert_attention, "floats",
              "no shared buffers, rotary embedding, or masks of rank 4"),
      contrib("QAttention", 5, 9, convert_qattention, "int8, uint8",
              "no shared buffers, rotary embedding, or masks of rank 4"),
      contrib("GroupQueryAttention", 7, 17, convert_group_query, "floats",
              "total_sequence_length known at compile time; no quantised or windowed cache"),
  };
}

}  // namespace tenon::onnx
