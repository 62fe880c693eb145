// SPDX-License-Identifier: Apache-2.0
// Operators that change shapes and order: reshape, transpose, concatenation, slices, padding, ...
#include <algorithm>

#include "tenon/arith/analyzer.h"
#include "tenon/import/onnx/operators.h"

namespace tenon::onnx {

namespace {

// A shape operand (from opset 5 on), or an attribute before.
Dims target_dims(Context& c) {
  if (c.opset() < 5) return to_exprs(c.ints_attr("shape"));
  return c.dims(1, "shape");
}

// Whether `number` cannot be negative: by arithmetic, or because `shape`, a tensor's, has a dimension of that size.
bool is_extent(const Expr& number, const Dims& shape) {
  return arith::Analyzer().proves_nonnegative(number) ||
         std::ranges::any_of(shape,
                             [&](const Expr& dim) { return arith::proves_equal(dim, number); });
}

// Of a target that only the run knows: 0 keeps a dimension, -1 takes what is left, and what comes
// out has to have as many elements.
Dims run_time_target(Context& c, const Dims& from, const Dims& target, bool zero_is_zero) {
  Dims dims = target, rest;
  Expr open_dims = int64(0);
  for (size_t d = 0; d < dims.size(); ++d) {
    if (!zero_is_zero && d < from.size()) dims[d] = select(eq(dims[d], int64(0)), from[d], dims[d]);
    const Expr is_open = eq(target[d], int64(-1));
    open_dims = open_dims + select(is_open, int64(1), int64(0));
    rest.push_back(arith::simplify(select(is_open, int64(1), dims[d])));
  }
  const Expr total = product(from), others = max(product(rest), int64(1));
  Expr exact = cast(kFloat64, int64(1));
  for (size_t d = 0; d < dims.size(); ++d) {
    dims[d] = arith::simplify(select(eq(target[d], int64(-1)), floordiv(total, others), dims[d]));
    // Products of integers may wrap.
    exact = exact * cast(kFloat64, dims[d]);
  }
  c.require(open_dims <= int64(1), kShapeMismatch, "the shape has two dimensions of -1");
  c.require(eq(exact, cast(kFloat64, total)), kShapeMismatch,
            "the shape has another number of elements than the tensor");
  return dims;
}

Results convert_reshape(Context& c) {
  c.ignore({"consumed_inputs"});
  const Dims from = c.shape(0);
  Dims dims = target_dims(c);
  const bool zero_is_zero = c.flag_attr("allowzero");
  const bool is_open_target = std::ranges::any_of(
      dims, [&](const Expr& dim) { return !as_int(dim) && !is_extent(dim, from); });
  if (is_open_target) {
    dims = run_time_target(c, from, dims, zero_is_zero);
    return {c.op("reshape", {c.value(0), c.shape_value(dims)})};
  }
  std::optional<size_t> open;
  for (size_t d = 0; d < dims.size(); ++d) {
    const auto value = as_int(dims[d]);
    if (value == 0 && !zero_is_zero) {
      if (d >= from.size())
        c.bad(kShapeMismatch, "`Reshape` keeps dimension {} of a tensor of rank {}", d,
              from.size());
      dims[d] = from[d];
    } else if (value == -1) {
      if (open) c.bad(kShapeMismatch, "`Reshape` to {} has two dimensions of -1", str(dims));
      open = d;
    } else if (value && *value < 0) {
      c.bad(kShapeMismatch, "`Reshape` to {} has a negative dimension", str(dims));
    }
  }
  if (open) {
    Dims rest;
    for (size_t d = 0; d < dims.size(); ++d)
      if (d != *open) rest.push_back(dims[d]);
    if (is_int(product(rest), 0))
      c.bad(kShapeMismatch, "`Reshape` to {} cannot infer the dimension of -1", str(dims));
    dims[*open] = exact_quotient(from, rest);
    const auto total = as_int(product(from)), all = as_int(product(dims));
    if (total && all && *total != *all)
      c.bad(kShapeMismatch, "`Reshape` of shape {} to {}: the sizes do not divide", str(from),
            str(target_dims(c)));
  }
  return {c.reshape(c.value(0), dims)};
}

Results convert_flatten(Context& c) {
  const int64_t ndim = c.ndim(0);
  int64_t axis = c.int_attr("axis", 1);
  if (axis < -ndim || axis > ndim)
    c.bad(kBadAttribute, "`axis` of `Flatten` is {}; expected {} to {}", axis, -ndim, ndim);
  if (axis < 0) axis += ndim;
  const Dims shape = c.shape(0);
  const auto cut = shape.begin() + axis;
  return {c.reshape(c.value(0), {product({shape.begin(), cut}), product({cut, shape.end()})})};
}

Results convert_transpose(Context& c) {
  std::vector<int64_t> perm;
  for (int64_t d = c.ndim(0); d-- > 0;) perm.push_back(d);
  perm = c.axes(c.ints_attr("perm", perm), c.ndim(0));
  if (static_cast<int64_t>(perm.size()) != c.ndim(0))
    c.bad(kBadAttribute, "attribute `perm` of `Transpose` has {} numbers; expected {}", perm.size(),
          c.ndim(0));
  return {c.transpose(c.value(0), perm)};
}

Ints axes_operand(Context& c, int64_t ndim) {
  return c.opset() < 13 ? c.axes(c.ints_attr("axes"), ndim) : c.axes_operand(1, "axes", ndim);
}

// By axes that only the run knows: each dimension of the result is 1 or one of the tensor's.
Value unsqueeze_by_numbers(Context& c, const Dims& axes) {
  const Dims from = c.shape(0);
  const auto ndim = static_cast<int64_t>(from.size() + axes.size());
  Dims dims;
  Expr added = int64(0);
  for (int64_t d = 0; d < ndim; ++d) {
    Expr is_new = boolean(false);
    for (const Expr& axis : axes)
      is_new = logical_or(is_new, logical_or(eq(axis, int64(d)), eq(axis, int64(d - ndim))));
    Expr dim = int64(1);
    for (size_t k = 0; k < from.size(); ++k)
      dim = select(eq(int64(d) - added, int64(static_cast<int64_t>(k))), from[k], dim);
    dims.push_back(arith::simplify(select(is_new, int64(1), dim)));
    added = added + select(is_new, int64(1), int64(0));
  }
  c.require(eq(added, int64(static_cast<int64_t>(axes.size()))), kBadAttribute,
            fmt::format("operand `axes` of `Unsqueeze` is not distinct axes of a tensor of rank {}",
                        ndim));
  return c.op("reshape", {c.value(0), c.shape_value(dims)});
}

Results convert_unsqueeze(Context& c) {
  const Dims given = c.opset() < 13 ? to_exprs(c.ints_attr("axes")) : c.dims(1, "axes");
  const auto known = as_ints(given);
  if (!known) return {unsqueeze_by_numbers(c, given)};
  auto axes = c.axes(*known, c.ndim(0) + static_cast<int64_t>(given.size()));
  std::sort(axes.begin(), axes.end());
  Dims dims = c.shape(0);
  for (const int64_t a : axes) dims.insert(dims.begin() + a, int64(1));
  return {c.reshape(c.value(0), dims)};
}

// Each way in which `count` of the dimensions that are symbols have an extent of 1: their axes.
std::vector<Ints> ways_to_squeeze(const Dims& dims, size_t count) {
  std::vector<Ints> ways{{}};
  for (size_t d = 0; d < dims.size(); ++d) {
    if (as_int(dims[d])) continue;
    const size_t before = ways.size();
    for (size_t w = 0; w < before; ++w) {
      if (ways[w].size() == count) continue;
      ways.push_back(ways[w]);
      ways.back().push_back(static_cast<int64_t>(d));
    }
  }
  std::erase_if(ways, [&](const Ints& way) { return way.size() != count; });
  return ways;
}

// Without axes: of the rank that the nodes behind it take, else none of the symbols is 1. Where some
// are, and only the run knows which, the dimensions of the result are chosen.
Results squeeze_ones(Context& c) {
  Dims from;
  for (const Expr& dim : c.shape(0))
    if (!is_int(dim, 1)) from.push_back(dim);
  const auto symbols = static_cast<size_t>(
      std::ranges::count_if(from, [](const Expr& dim) { return !as_int(dim); }));
  if (symbols == 0) return {c.reshape(c.value(0), from)};
  const size_t rank = c.wanted_rank(0).value_or(from.size());
  const bool is_possible = rank <= from.size() && rank + symbols >= from.size();
  const auto ways = ways_to_squeeze(from, is_possible ? from.size() - rank : 0);
  Dims dims;
  Expr any = boolean(false);
  for (const Ints& way : ways) {
    Dims kept;
    Expr holds = boolean(true);
    for (size_t d = 0; d < from.size(); ++d) {
      const bool is_one = std::ranges::count(way, static_cast<int64_t>(d)) != 0;
      if (!is_one) kept.push_back(from[d]);
      if (!as_int(from[d]))
        holds = logical_and(holds, is_one ? eq(from[d], int64(1)) : ne(from[d], int64(1)));
    }
    any = logical_or(any, holds);
    if (dims.empty()) dims = kept;
    for (size_t d = 0; d < kept.size(); ++d)
      if (!structural_equal(dims[d], kept[d])) dims[d] = select(holds, kept[d], dims[d]);
  }
  c.require(any, kShapeMismatch,
            fmt::format("`Squeeze` without axes of shape {} gives another rank than {}, which was "
                        "taken when it was compiled",
                        str(c.shape(0)), dims.size()));
  return {c.reshape(c.value(0), dims)};
}

Results convert_squeeze(Context& c) {
  const Dims from = c.shape(0);
  const bool given = c.opset() < 13 ? c.has_attr("axes") : c.has(1);
  if (!given) return squeeze_ones(c);
  const std::vector<int64_t> axes = axes_operand(c, c.ndim(0));
  Dims dims;
  for (int64_t d = 0; d < c.ndim(0); ++d) {
    const Expr& dim = from[static_cast<size_t>(d)];
    if (!std::count(axes.begin(), axes.end(), d)) {
      dims.push_back(dim);
      continue;
    }
    if (as_int(dim) && !is_int(dim, 1))
      c.bad(kShapeMismatch, "`Squeeze` of axis {} of shape {}, which is not 1", d, str(from));
    c.require(eq(dim, int64(1)), kShapeMismatch,
              fmt::format("axis {} of `Squeeze` has another extent than 1", d));
  }
  return {c.reshape(c.value(0), dims)};
}

Results convert_concat(Context& c) {
  const int64_t axis = c.axis(c.int_attr("axis", 1), c.ndim(0));
  if (c.input_count() == 1) return {c.value(0)};
  std::vector<Value> parts;
  for (size_t i = 0; i < c.input_count(); ++i) parts.push_back(c.value(i));
  return {c.op("concat", {make<graph::Tuple>(std::move(parts))}, {{"axis", axis}})};
}

// The sizes of a split, which may be expressions.
Dims split_sizes(Context& c, const Expr& extent, int64_t outputs) {
  if (c.opset() < 13 && c.has_attr("split")) return to_exprs(c.ints_attr("split"));
  if (c.has(1)) return c.dims(1, "split");
  if (c.has_attr("num_outputs") && c.int_attr("num_outputs") != outputs)
    c.bad(kBadAttribute, "attribute `num_outputs` of `Split` is {}; the node has {} outputs",
          c.int_attr("num_outputs"), outputs);
  Dims sizes;
  const Expr size = ceildiv(extent, int64(outputs));
  for (int64_t at = 0; at < outputs; ++at)
    sizes.push_back(arith::simplify(max(min(extent - size * int64(at), size), int64(0))));
  return sizes;
}

// Parts whose sizes are expressions.
Results split_symbolic(Context& c, int64_t axis, const Expr& extent, const Dims& sizes) {
  Results results;
  Expr begin = int64(0);
  for (const Expr& size : sizes) {
    c.require(size >= int64(0), kShapeMismatch,
              fmt::format("a size of `{}` is negative", c.name()));
    const Expr end = arith::simplify(begin + size);
    results.push_back(c.op("strided_slice",
                           {c.value(0), c.shape_value({int64(axis)}), c.shape_value({begin}),
                            c.shape_value({end}), c.shape_value({int64(1)})},
                           {{"assume_inbound", true}}));
    begin = end;
  }
  c.require(eq(begin, extent), kShapeMismatch,
            fmt::format("the sizes of `{}` are not those of its axis", c.name()));
  return results;
}

Results convert_split(Context& c) {
  const int64_t axis = c.axis(c.int_attr("axis", 0), c.ndim(0));
  const auto outputs = static_cast<int64_t>(c.output_count());
  const Dims sizes = split_sizes(c, c.shape(0)[static_cast<size_t>(axis)], outputs);
  if (static_cast<int64_t>(sizes.size()) != outputs)
    c.bad(kShapeMismatch, "`Split` has {} sizes for {} outputs", sizes.size(), outputs);
  return split_into(c, axis, sizes);
}

// The end of a slice is held in its axis, as ONNX has it. Where it is an expression of the
// dimensions, the network means the plain difference: other operands of the slice's users have it.
Value slice(Context& c, const std::vector<int64_t>& axes, const Dims& starts, const Dims& ends,
            const Dims& steps) {
  const Value sliced =
      c.op("strided_slice", {c.value(0), c.shape_value(to_exprs(axes)), c.shape_value(starts),
                             c.shape_value(ends), c.shape_value(steps)});
  const Dims dims = *shaped(sliced)->shape;
  for (size_t k = 0; k < axes.size(); ++k) {
    const Expr& dim = dims[static_cast<size_t>(axes[k])];
    if (!is_int(steps[k], 1) || as_int(ends[k]) || as_int(dim)) continue;
    arith::Analyzer analyzer;
    const Expr plain = analyzer.simplify(ends[k] - starts[k]);
    if (analyzer.proves_nonnegative(starts[k]) && is_extent(plain, c.shape(0)) &&
        !analyzer.proves_equal(plain, dim))
      c.clamps(dim, plain, c.shape(0)[static_cast<size_t>(axes[k])]);
  }
  return sliced;
}

Results convert_slice(Context& c) {
  const int64_t ndim = c.ndim(0);
  Dims starts, ends, steps;
  Ints axes;
  if (c.opset() < 10) {
    starts = to_exprs(c.ints_attr("starts"));
    ends = to_exprs(c.ints_attr("ends"));
    axes = c.ints_attr("axes", {});
  } else {
    starts = c.dims(1, "starts");
    ends = c.dims(2, "ends");
    if (c.has(4)) steps = c.dims(4, "steps");
    if (c.has(3)) axes = c.axes_operand(3, "axes", ndim);
  }
  if (axes.empty())
    for (size_t d = 0; d < starts.size(); ++d) axes.push_back(static_cast<int64_t>(d));
  if (steps.empty()) steps.assign(starts.size(), int64(1));
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    c.bad(kShapeMismatch, "`Slice` has {} starts, {} ends, {} axes and {} steps", starts.size(),
          ends.size(), axes.size(), steps.size());
  axes = c.axes(axes, ndim);
  for (Expr& step : steps) {
    if (const auto known = as_int(step)) {
      if (*known == 0) c.bad(kBadAttribute, "`Slice` has a step of 0");
      step = int64(std::clamp<int64_t>(*known, -INT64_MAX, INT64_MAX));
    } else {
      c.require(ne(step, int64(0)), kBadAttribute, "a step of `Slice` is 0");
    }
  }
  return {slice(c, axes, starts, ends, steps)};
}

constexpr int64_t kMostPad = int64_t{1} << 40;

// Widths that only the run knows, or a value that does not stand in the network.
Value pad_by_operands(Context& c, const Dims& widths, const std::string& mode) {
  const Dims from = c.shape(0);
  for (const Expr& width : widths)
    c.require(logical_and(width >= int64(-kMostPad), width <= int64(kMostPad)), kOverflow,
              "`Pad` by more elements than there can be");
  for (size_t d = 0; d < from.size() && mode == "constant"; ++d)
    c.require(from[d] + widths[2 * d] + widths[2 * d + 1] >= int64(0), kShapeMismatch,
              fmt::format("`Pad` removes more elements than axis {} has", d));
  for (size_t d = 0; d < from.size() && mode != "constant"; ++d) {
    const Expr most = max(widths[2 * d], widths[2 * d + 1]);
    c.require(logical_or(most <= int64(0), mode == "reflect" ? most < from[d] : from[d] > int64(0)),
              kShapeMismatch, fmt::format("axis {} is too short to be padded in mode {}", d, mode));
  }
  std::vector<Value> args{c.value(0), c.shape_value(widths)};
  if (mode == "constant" && c.opset() >= 11 && c.has(2)) args.push_back(c.reshape(c.value(2), {}));
  return c.op("nn.pad", std::move(args), {{"pad_mode", mode}});
}

// Before and after each axis.
Dims pad_widths(const Dims& pads, const Ints& axes, int64_t ndim) {
  Dims widths(static_cast<size_t>(2 * ndim), int64(0));
  for (size_t k = 0; k < axes.size(); ++k) {
    const auto d = static_cast<size_t>(axes[k]);
    widths[2 * d] = pads[k];
    widths[2 * d + 1] = pads[k + axes.size()];
  }
  return widths;
}

Results convert_pad(Context& c) {
  const int64_t ndim = c.ndim(0);
  std::string mode = c.string_attr("mode", "constant");
  Dims pads;
  Ints axes;
  if (c.opset() < 11)
    pads = to_exprs(c.has_attr("paddings") ? c.ints_attr("paddings") : c.ints_attr("pads"));
  else
    pads = c.dims(1, "pads");
  if (c.opset() >= 18 && c.has(3))
    axes = c.axes_operand(3, "axes", ndim);
  else
    for (int64_t d = 0; d < ndim; ++d) axes.push_back(d);
  if (pads.size() != 2 * axes.size())
    c.bad(kShapeMismatch, "`Pad` has {} pads for {} axes; expected {}", pads.size(), axes.size(),
          2 * axes.size());
  if (mode == "wrap") mode = "circular";
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "circular")
    c.bad(kBadAttribute,
          "attribute `mode` of `Pad` is `{}`; expected constant, reflect, edge or wrap", mode);
  const Dims widths = pad_widths(pads, axes, ndim);
  const auto known = as_ints(widths);
  const bool has_value = c.opset() >= 11 && c.has(2);
  if (!known || (mode == "constant" && has_value && !c.constant(2)))
    return {pad_by_operands(c, widths, mode)};
  const double value = has_value        ? c.float_scalar(2, "constant_value")
                       : c.opset() < 11 ? c.float_attr("value", 0)
                                        : 0;
  for (const int64_t w : *known)
    if (w > kMostPad || w < -kMostPad) c.bad(kOverflow, "`Pad` by {} elements", w);
  if (std::all_of(known->begin(), known->end(), [](int64_t w) { return w == 0; }))
    return {c.value(0)};
  return {c.op("nn.pad", {c.value(0)},
               {{"pad_width", *known}, {"pad_mode", mode}, {"pad_value", value}})};
}

Results convert_expand(Context& c) {
  Dims target = c.dims(1, "shape");
  const Dims from = c.shape(0);
  arith::Analyzer analyzer;
  // Broadcasting goes both ways: a dimension of 1 in the target keeps the tensor's.
  for (size_t i = 1; i <= from.size(); ++i) {
    const Expr& dim = from[from.size() - i];
    if (i > target.size()) {
      target.insert(target.begin(), dim);
      continue;
    }
    Expr& wanted = target[target.size() - i];
    if (is_int(wanted, 1)) {
      wanted = dim;
    } else if (!as_int(wanted) && !is_int(dim, 1) && !analyzer.proves_nonnegative(wanted)) {
      c.require(logical_or(logical_or(eq(dim, int64(1)), eq(wanted, int64(1))), eq(wanted, dim)),
                kShapeMismatch, "the tensor cannot be broadcast to the shape");
      wanted = as_int(dim) ? dim : select(eq(dim, int64(1)), wanted, dim);
    }
  }
  if (arith::proves_equal(from, target)) return {c.value(0)};
  return {c.op("broadcast_to", {c.value(0), c.shape_value(target)})};
}

Results convert_tile(Context& c) {
  const Dims repeats = c.dims(1, "repeats");
  if (static_cast<int64_t>(repeats.size()) != c.ndim(0))
    c.bad(kShapeMismatch, "`Tile` has {} repeats for a tensor of rank {}", repeats.size(),
          c.ndim(0));
  const auto counts = as_ints(repeats);
  if (counts) return {c.op("tile", {c.value(0)}, {{"repeats", *counts}})};
  // Repeating is broadcasting along an axis of 1 in front.
  const Dims from = c.shape(0);
  Dims split, repeated, dims;
  for (size_t d = 0; d < from.size(); ++d) {
    dims.push_back(arith::simplify(from[d] * repeats[d]));
    if (!is_int(repeats[d], 1) && !is_int(from[d], 1)) {
      split.push_back(int64(1));
      repeated.push_back(repeats[d]);
    }
    split.push_back(from[d]);
    repeated.push_back(is_int(from[d], 1) ? repeats[d] : from[d]);
  }
  const Value x = c.op("broadcast_to", {c.reshape(c.value(0), split), c.shape_value(repeated)});
  return {c.reshape(x, dims)};
}

void check_block_size(Context& c, int64_t size) {
  if (size < 1 || size > (1 << 20))
    c.bad(kBadAttribute, "attribute `blocksize` of `{}` is {}; expected at least 1", c.name(),
          size);
}

// A dimension by a number that has to divide it.
Expr divided(Context& c, const Expr& dim, int64_t by) {
  c.require(eq(floormod(dim, int64(by)), int64(0)), kShapeMismatch,
            fmt::format("`{}` of a dimension that {} does not divide: {}", c.name(), by, str(dim)));
  return arith::simplify(floordiv(dim, int64(by)));
}

Results convert_depth_to_space(Context& c) {
  const int64_t b = c.int_attr("blocksize");
  const std::string mode = c.string_attr("mode", "DCR");
  if (c.ndim(0) != 4)
    c.bad(kRankMismatch, "`DepthToSpace` of a tensor of rank {}; expected 4", c.ndim(0));
  const Dims s = c.shape(0);
  check_block_size(c, b);
  const Expr block = int64(b), rest = divided(c, s[1], b * b);
  const bool dcr = mode == "DCR";
  Value x = c.reshape(c.value(0), dcr ? Dims{s[0], block, block, rest, s[2], s[3]}
                                      : Dims{s[0], rest, block, block, s[2], s[3]});
  x = c.transpose(
      x, dcr ? std::vector<int64_t>{0, 3, 4, 1, 5, 2} : std::vector<int64_t>{0, 1, 4, 2, 5, 3});
  return {c.reshape(x, {s[0], rest, arith::simplify(s[2] * b), arith::simplify(s[3] * b)})};
}

Results convert_space_to_depth(Context& c) {
  const int64_t b = c.int_attr("blocksize");
  if (c.ndim(0) != 4)
    c.bad(kRankMismatch, "`SpaceToDepth` of a tensor of rank {}; expected 4", c.ndim(0));
  const Dims s = c.shape(0);
  check_block_size(c, b);
  const Expr block = int64(b), rows = divided(c, s[2], b), columns = divided(c, s[3], b);
  Value x = c.reshape(c.value(0), {s[0], s[1], rows, block, columns, block});
  x = c.transpose(x, {0, 3, 5, 1, 2, 4});
  return {c.reshape(x, {s[0], arith::simplify(s[1] * (b * b)), rows, columns})};
}

// Shape and Size of any tensor are known elements; see propagate.h.
Results convert_shape(Context&) { unsupported("a shape known only at run time"); }

}  // namespace

std::vector<OperatorRow> shape_rows() {
  return {
      {"Reshape", 1, 1, 2, convert_reshape, "all"},
      {"Flatten", 1, 1, 1, convert_flatten, "all"},
      {"Transpose", 1, 1, 1, convert_transpose, "all"},
      {"Unsqueeze", 1, 1, 2, convert_unsqueeze, "all"},
      {"Squeeze", 1, 1, 2, convert_squeeze, "all"},
      {"Concat", 1, 1, -1, convert_concat, "all"},
      {"Split", 2, 1, 2, convert_split, "all"},
      {"Slice", 1, 1, 5, convert_slice, "all"},
      {"Pad", 1, 1, 4, convert_pad, "numbers"},
      {"Expand", 8, 2, 2, convert_expand, "all"},
      {"Tile", 6, 2, 2, convert_tile, "all"},
      {"DepthToSpace", 1, 1, 1, convert_depth_to_space, "all"},
      {"SpaceToDepth", 1, 1, 1, convert_space_to_depth, "all"},
      {"Shape", 1, 1, 1, convert_shape, "all"},
      {"Size", 1, 1, 1, convert_shape, "all"},
  };
}

Results split_into(Context& c, int64_t axis, const Dims& sizes) {
  const Expr extent = c.shape(0)[static_cast<size_t>(axis)];
  const auto known = as_ints(sizes);
  if (!known) return split_symbolic(c, axis, extent, sizes);
  const auto total = as_int(extent);
  const Ints& parts = *known;
  std::vector<int64_t> begins;
  int64_t sum = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) begins.push_back(sum);
    if (parts[i] < 0 || __builtin_add_overflow(sum, parts[i], &sum))
      c.bad(kShapeMismatch, "`{}` into sizes {}", c.name(), str(parts));
  }
  if (total && sum != *total)
    c.bad(kShapeMismatch, "`{}` into sizes {} of an axis of {}", c.name(), str(parts), *total);
  if (parts.size() == 1) return {c.value(0)};
  const Value all = c.op("split", {c.value(0)}, {{"indices_or_sections", begins}, {"axis", axis}});
  Results results;
  for (size_t i = 0; i < parts.size(); ++i)
    results.push_back(
        c.builder().emit(make<graph::TupleGetItem>(all, static_cast<int64_t>(i), c.origin())));
  return results;
}

}  // namespace tenon::onnx
